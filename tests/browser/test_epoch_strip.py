"""The strip of epochs on Train: play and the slider move the points in the browser alone."""

from typing import Any

from patience import PATIENCE

PICTURE = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
  return all(document).find((e) => e.matches(".map .stage canvas")).toDataURL();
}"""


def test_the_strip_moves_the_points_without_the_server(filled_app: str, page: Any) -> None:
    page.set_default_timeout(1000 * PATIENCE)
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{filled_app}/train?watch=simclr-digits")
    name = page.locator(".epochs output")
    name.filter(has_text="epoch 40").wait_for()
    page.mouse.move(0, 0)
    newest = page.evaluate(PICTURE)
    page.context.set_offline(True)
    slider = page.get_by_label("epoch of the map")
    slider.focus()
    slider.press("ArrowLeft")
    name.filter(has_text="epoch 21").wait_for()
    page.wait_for_function(f"(before) => ({PICTURE})() !== before", arg=newest)
    page.get_by_role("button", name="play the epochs").click()
    name.filter(has_text="epoch 40").wait_for()
    page.wait_for_function(f"(before) => ({PICTURE})() === before", arg=newest)
