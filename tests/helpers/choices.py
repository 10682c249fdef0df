"""Every widget of a drawn page, choices with it, and whether the server has answered them."""

import time
from typing import Any

from patience import PATIENCE
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

__all__ = ["CHOICES", "IDLE", "LOOK", "POPOVERS", "Answers", "Choosing", "open_all", "shown", "state_of"]

CHOICES = 2
LOOK = 200  # ms between two looks at a page, which cost it as much as drawing does

# By kind: its value as it is shown, its options where they stand in the page, and the buttons.
SHOWN = """() => {
  const kinds = {Selectbox: 'stSelectbox', MultiSelect: 'stMultiSelect', Radio: 'stRadio',
    Group: 'stButtonGroup', Checkbox: 'stCheckbox', Number: 'stNumberInput', Slider: 'stSlider',
    Tabs: 'stTabs'};
  const marks = '[role=radio], [aria-pressed], label:has(input[type=radio]), [role=tab]';
  const names = {}, widgets = [];
  for (const [kind, id] of Object.entries(kinds))
    for (const place of document.querySelectorAll(`[data-testid=${id}]`)) {
      if (!place.checkVisibility() || place.querySelector('input:disabled')) continue;
      const input = place.querySelector('input'),
        label = place.querySelector('[data-testid=stWidgetLabel]')?.textContent ?? '',
        key = place.closest('[class*=st-key-]')?.className.match(/st-key-(\\S*)/)[1] ?? '';
      let name = `${kind} ${label} ${key.replace(/-?[0-9a-f]{16}/g, '')}`.trim();
      names[name] = (names[name] ?? 0) + 1;
      if (names[name] > 1) name += ` ${names[name]}`;
      place.dataset.name = name;
      const buttons = kind === 'Checkbox' || input?.type === 'text' ? []
        : [...place.querySelectorAll(marks)].filter((b) => !b.parentElement.closest(marks));
      const isOn = (b) => b.querySelector('input')?.checked ||
        [b.ariaChecked, b.ariaPressed, b.ariaSelected].includes('true');
      widgets.push({name, kind, options: buttons.map((b) => b.textContent),
        value: kind === 'MultiSelect'
          ? [...place.querySelectorAll('[data-tag]')].map((t) => t.ariaLabel)
          : kind === 'Checkbox' ? input.checked
          : buttons.length ? buttons.filter(isOn).map((b) => b.textContent)
          : input.value,
        low: input?.min, high: input?.max, step: input?.step,
        form: !!place.closest('[data-testid=stForm]')});
    }
  return widgets;
}"""

# The address, and what the page shows besides its widgets.
STATE = """() => {
  const main = document.querySelector('[data-testid=stMain]'), text = [], F = NodeFilter;
  const nodes = document.createTreeWalker(main, F.SHOW_ELEMENT | F.SHOW_TEXT, (n) =>
    n.nodeType === 3 ? F.FILTER_ACCEPT
      : n.dataset?.name || n.localName === 'style' ? F.FILTER_REJECT : F.FILTER_SKIP);
  while (nodes.nextNode()) text.push(nodes.currentNode.data);
  const off = [...main.querySelectorAll('button')].map((b) => b.disabled).join();
  const typed = [...main.querySelectorAll('textarea, input')]
    .filter((e) => !e.closest('[data-name]')).map((e) => e.value);
  const parts = [...main.querySelectorAll('*')].map((e) => e.shadowRoot?.textContent ?? '');
  return [location.href, text, typed, parts, off].join();
}"""
IDLE = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState ===
  'notRunning' && document.querySelector('[data-testid=stMain] h1') !== null &&
  ![...document.querySelectorAll('[data-testid=stSkeleton]')].some((e) => e.checkVisibility())"""
PAINTED = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
POPOVERS = "[data-testid=stPopover] button"
CLOSED = "[data-testid=stExpander]:not([inert] *) details:not([open]) > summary"


class Answers:
    """What a page asked of its server, and whether that is answered: read from the socket, so that
    no pace is supposed of either."""

    def __init__(self, page: Any) -> None:
        self.page, self.asked = page, 0
        self._waits, self._answering = False, False
        page.on("websocket", self._listen)

    def _listen(self, socket: Any) -> None:
        self._waits, self._answering = True, False  # a new page asks for itself
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: bytes | str) -> None:
        message = BackMsg.FromString(frame) if isinstance(frame, bytes) else BackMsg()
        if message.HasField("rerun_script") and not message.rerun_script.is_auto_rerun:
            self.asked += 1
            self._waits, self._answering = True, False

    def _received(self, frame: bytes | str) -> None:
        message = ForwardMsg.FromString(frame) if isinstance(frame, bytes) else ForwardMsg()
        if message.HasField("new_session"):
            self._answering = True
        elif message.HasField("script_finished") and self._answering:
            self._waits = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN

    def wait(self, asked: int) -> None:
        """Until so many questions were asked, the last is answered, and the answer is drawn."""
        end = time.monotonic() + PATIENCE
        while self.asked < asked or self._waits:
            assert time.monotonic() < end, "the server does not answer"
            self.page.wait_for_timeout(20)
        self.page.wait_for_function(IDLE, polling=LOOK, timeout=1000 * PATIENCE)
        self.page.evaluate(PAINTED)
        assert self.page.locator("[data-testid=stException]").count() == 0


def open_all(page: Any) -> None:
    """Open what is folded up."""
    while (closed := page.locator(CLOSED)).count():
        closed.first.click()


def shown(page: Any) -> dict[str, dict[str, Any]]:
    """The widgets in which something can be chosen, by names that stay, in the page's order."""
    open_all(page)
    return {w["name"]: w for w in page.evaluate(SHOWN)}


def state_of(page: Any) -> str:
    return str(page.evaluate(STATE))


class Choosing:
    """Choices one after the other with the widget of this name."""

    def __init__(self, page: Any, answers: Answers, name: str) -> None:
        self.page, self.answers, self.name = page, answers, name
        self.chosen: Any = None
        self.past: list[str] = []  # what was shown at first, and what was chosen
        self.may_be_none = False  # as at first

    def widget(self) -> dict[str, Any]:
        """As it is shown now; while its rows are made the page may lack it."""
        end = time.monotonic() + PATIENCE
        while (widget := shown(self.page).get(self.name)) is None:
            assert time.monotonic() < end, f"{self.name} is gone"
            self.page.wait_for_timeout(LOOK)
        return widget

    def place(self) -> Any:
        """Where it stands; what is drawn anew has lost the name that `shown` gave it."""
        from playwright.sync_api import TimeoutError  # where it is missing, tests are skipped

        place, end = self.page.locator(f'[data-name="{self.name}"]'), time.monotonic() + PATIENCE
        while True:
            try:
                place.scroll_into_view_if_needed(timeout=1000)
            except TimeoutError:
                assert time.monotonic() < end, f"{self.name} is gone"
                self.widget()
            else:
                return place

    def choose(self) -> bool:
        """Choose something else than what is shown, and wait for the answer; False where there is
        nothing else."""
        before = self.widget()
        if self.chosen is None:
            self.chosen = before["value"]
            self.past = list(self.chosen) if isinstance(self.chosen, list) else [str(self.chosen)]
            self.may_be_none = self.chosen == []
        assert before["value"] == self.chosen, f"{self.name}: {self.chosen} was lost"
        asked, place = self.answers.asked, self.place()
        if not getattr(self, f"_{before['kind'].lower()}")(place, before):
            return False
        self.answers.wait(asked + (not before["form"]))
        after = self.widget()["value"]
        assert after == self.chosen, f"{self.name}: {self.chosen} was chosen, {after} is shown"
        return True

    def _fresh(self, options: list[str]) -> str | None:
        """An option that was not chosen before, or the one whose turn is longest ago."""
        options = sorted(options, key=lambda o: self.past[::-1].index(o) if o in self.past else 99)
        fresh = [o for o in options if o not in self.past]
        text = (fresh or options[::-1] or [None])[0]
        if text is not None:
            self.past.append(text)
        return text

    def _group(self, place: Any, widget: dict[str, Any]) -> bool:
        text, on = self._fresh([o for o in widget["options"] if o not in widget["value"]]), widget["value"]
        if text is None and not (self.may_be_none and on):
            return False
        marks = "[role=radio], [aria-pressed], [role=tab], label:has(input[type=radio])"
        place.locator(marks).nth(widget["options"].index(on[0] if text is None else text)).click()
        self.chosen = [] if text is None else [text]  # the only one there is, clicked again, is taken back
        return True

    _radio = _tabs = _group

    def _checkbox(self, place: Any, widget: dict[str, Any]) -> bool:
        place.locator("label").first.click()
        self.chosen = not widget["value"]
        return True

    def _number(self, place: Any, widget: dict[str, Any]) -> bool:
        low, high, step = (float(widget[k] or d) for k, d in (("low", 0), ("high", 9), ("step", 1)))
        low = low if low > -1e300 else 0  # without bounds the browser part names the largest numbers
        value = float(widget["value"] or low)
        steps = [value + k * step for k in (1, 2, 3, -1, -2, -3)]
        text = self._fresh([f"{v:.6g}" for v in steps if low <= v <= high])
        if text is None:
            return False
        field = place.locator("input")
        field.fill(text)
        field.press("Enter" if not widget["form"] else "Tab")
        self.chosen = field.input_value()
        assert float(self.chosen) == float(text), self.name
        return True

    def _slider(self, place: Any, widget: dict[str, Any]) -> bool:
        field = place.locator("input").first
        up = float(widget["value"]) < float(widget["high"])
        field.press("PageUp" if up else "PageDown")
        self.chosen = field.input_value()
        assert self.chosen != widget["value"], self.name
        return True

    def _selectbox(self, place: Any, widget: dict[str, Any]) -> bool:
        text = self._from_list(place, [widget["value"]])
        self.chosen = widget["value"] if text is None else text
        return text is not None

    def _multiselect(self, place: Any, widget: dict[str, Any]) -> bool:
        text = self._from_list(place, widget["value"])
        if text is None and len(widget["value"]) > 1:  # all are, or as many as may be: one goes
            place.locator("[data-tag] button").last.click()
            self.chosen = widget["value"][:-1]
            return True
        self.chosen = widget["value"] + [text] * (text is not None)
        return text is not None

    def _from_list(self, place: Any, but: list[str]) -> str | None:
        """Choose from the list that opens."""
        place.locator("[aria-haspopup=listbox]:visible, input[role=combobox]:visible").last.click()
        listed = self.page.get_by_role("option")
        listed.first.wait_for(timeout=1000 * PATIENCE)
        texts = [t.strip() for t in listed.all_inner_texts()]
        text = self._fresh([t for t in texts if t not in (*but, "Select all")])
        if text is not None:
            listed.nth(texts.index(text)).click()
        if listed.count():
            self.page.keyboard.press("Escape")
        return text
