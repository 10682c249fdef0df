"""Settings as pages name them."""

from contrastive_lab.setting_names import shown_name, shown_value


def test_what_a_step_is_like_is_told_where_the_step_is_on() -> None:
    recipe = {
        "crop": 1.0,
        "crop_aspect": 4 / 3,
        "rotation": 0.0,
        "rotation_degrees": 15.0,
        "blur": 0.5,
        "blur_low": 0.1,
        "solarize": 0.0,
        "solarize_from": 0.5,
    }
    said = "crop 1; crop's aspect ratio 1.333; blur 0.5; smallest blur, pixels 0.1"
    assert shown_value(recipe) == said
    assert shown_value({"blur_low": 0.1}) == "smallest blur, pixels 0.1"  # of a part of a recipe


def test_names_are_words() -> None:
    assert shown_name("recipe.crop_low") == "augmentations: smallest crop"
    assert shown_name("batch_size") == "batch size"
