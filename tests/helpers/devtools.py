"""Selenium without chromedriver: the commands that the tests use, sent to Chromium by its DevTools protocol."""

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import websocket
from selenium import webdriver
from selenium.common.exceptions import JavascriptException, NoSuchElementException, WebDriverException
from selenium.webdriver.remote.command import Command

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element in the WebDriver protocol."""
KEYS = {
    "\ue003": ("Backspace", 8), "\ue004": ("Tab", 9), "\ue006": ("Enter", 13), "\ue007": ("Enter", 13),
    "\ue008": ("Shift", 16), "\ue009": ("Control", 17), "\ue00a": ("Alt", 18), "\ue00c": ("Escape", 27),
    "\ue00d": (" ", 32), "\ue012": ("ArrowLeft", 37), "\ue013": ("ArrowUp", 38), "\ue014": ("ArrowRight", 39),
    "\ue015": ("ArrowDown", 40), "\ue017": ("Delete", 46),
}  # fmt: skip
MODIFIERS = {"Alt": 1, "Control": 2, "Shift": 8}
CENTER = """function() {
    this.scrollIntoViewIfNeeded();
    const r = this.getBoundingClientRect();
    return [r.x + r.width / 2, r.y + r.height / 2];
}"""
REPLACED = ("Cannot find context", "Not attached to an active page", "navigated or closed")
"""What Chromium says of calls to a page that gives way to another; none of them was run."""
ASYNC = "function() { return new Promise(done => { (function() { %s }).apply(null, [...arguments, done]); }); }"


class DevTools:
    """Executes WebDriver commands in a Chromium of its own."""

    def __init__(self, chromium: str, arguments: list[str], profile: Path) -> None:
        command = [chromium, *arguments, "--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port_file = profile / "DevToolsActivePort"
        while not port_file.exists() or port_file.read_text().count("\n") < 1:
            if self.process.poll() is not None:
                raise WebDriverException(f"Chromium ended with status {self.process.returncode}.")
            time.sleep(0.05)
        port, path = port_file.read_text().split("\n")[:2]
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=600)
        self.last, self.logs, self.pressed, self.pointer = 0, [], 0, (0.0, 0.0)
        self.is_loaded = True
        self.sessions: dict[str, str] = {}
        self._new_tab()

    # ---- the protocol

    def send(self, method: str, params: dict[str, Any] | None = None, *, tab: bool = True) -> dict[str, Any]:
        """Send a command, to the current tab or the browser, and return its result."""
        number = self._post(method, params or {}, self.sessions[self.handle] if tab else None)
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == number:
                if "error" in answer:
                    raise WebDriverException(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _post(self, method: str, params: dict[str, Any], session: str | None) -> int:
        """Send a command without waiting for its result, and return its number."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return self.last

    def _note(self, event: dict[str, Any]) -> None:
        """Keep what pages complain about, and leave a page that asks whether to, as chromedriver does."""
        params = event.get("params", {})
        if event.get("method") == "Page.javascriptDialogOpening" and params["type"] == "beforeunload":
            self._post("Page.handleJavaScriptDialog", {"accept": True}, event["sessionId"])
        self.is_loaded |= event.get("method") == "Page.loadEventFired"
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] != "verbose":
            self.logs.append({"level": params["entry"]["level"].upper(), "message": params["entry"]["text"]})
        elif event.get("method") == "Runtime.exceptionThrown":
            self.logs.append({"level": "SEVERE", "message": json.dumps(params["exceptionDetails"])})
        elif event.get("method") == "Runtime.consoleAPICalled":
            self.logs.append({"level": params["type"].upper(), "message": json.dumps(params["args"])})

    def _new_tab(self) -> str:
        self.handle = self.send("Target.createTarget", {"url": "about:blank"}, tab=False)["targetId"]
        attached = self.send("Target.attachToTarget", {"targetId": self.handle, "flatten": True}, tab=False)
        self.sessions[self.handle] = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        return self.handle

    def _call(self, function: str, arguments: list[Any], this: str | None = None) -> Any:
        """Call a function of the page; elements go in and come out as references."""
        if this is None:
            return self._call_in_page(function, arguments)
        call = {
            "functionDeclaration": function, "objectId": this, "awaitPromise": True, "userGesture": True,
            "arguments": [_argument(each) for each in arguments],
        }  # fmt: skip
        found = self.send("Runtime.callFunctionOn", call)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise JavascriptException(details.get("exception", {}).get("description", details["text"]))
        result = found["result"]
        if result.get("subtype") == "node":
            return {ELEMENT: result["objectId"]}
        if result.get("subtype") == "array":
            n = self._value("function() { return this.length; }", result["objectId"])
            item = "function(k) { return this[k]; }"
            return [self._call(item, [k], result["objectId"]) for k in range(n)]
        if "objectId" in result:
            return self._value("function() { return this; }", result["objectId"])
        return result.get("value")

    def _call_in_page(self, function: str, arguments: list[Any]) -> Any:
        """Call a function as one of the page, again where the page was being replaced by another."""
        while True:
            try:
                return self._call(function, arguments, self._page())
            except WebDriverException as error:
                if not any(reason in str(error) for reason in REPLACED):
                    raise
            time.sleep(0.02)

    def _page(self) -> str:
        """The global object of the page."""
        return str(self.send("Runtime.evaluate", {"expression": "globalThis"})["result"]["objectId"])

    def _value(self, function: str, this: str) -> Any:
        call = {"functionDeclaration": function, "objectId": this, "returnByValue": True}
        return self.send("Runtime.callFunctionOn", call)["result"].get("value")

    # ---- keys and pointer

    def _key(self, value: str, *, down: bool) -> None:
        name, code = KEYS.get(value, (value, ord(value.upper()) if value.isascii() and value.isalnum() else 0))
        bit = MODIFIERS.get(name, 0)
        self.pressed = self.pressed | bit if down else self.pressed & ~bit
        event: dict[str, Any] = {"type": "keyUp", "key": name, "windowsVirtualKeyCode": code, "modifiers": self.pressed}
        if down:
            text = "\r" if name == "Enter" else name if len(name) == 1 and not self.pressed & 3 else ""
            event |= {"type": "keyDown" if text else "rawKeyDown"} | ({"text": text} if text else {})
        self.send("Input.dispatchKeyEvent", event)

    def _type(self, keys: str) -> None:
        for key in keys:
            self._key(key, down=True)
            self._key(key, down=False)

    def _mouse(self, kind: str, held: int = 0) -> None:
        x, y = self.pointer
        event = {"type": kind, "x": x, "y": y, "button": "left" if kind != "mouseMoved" or held else "none"}
        clicks = {"clickCount": 1} if kind != "mouseMoved" else {}
        self.send("Input.dispatchMouseEvent", {**event, "buttons": held, "modifiers": self.pressed, **clicks})

    def _click(self, element: str) -> None:
        self.pointer = tuple(self._call(CENTER, [], element))
        for kind, held in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            self._mouse(kind, held)

    def _perform(self, sources: list[dict[str, Any]]) -> None:
        """Perform the actions of all sources, tick by tick."""
        held = 0
        for tick in range(max(len(source["actions"]) for source in sources)):
            for action in (source["actions"][tick] for source in sources if tick < len(source["actions"])):
                kind = action["type"]
                if kind in ("keyDown", "keyUp"):
                    self._key(action["value"], down=kind == "keyDown")
                elif kind == "pointerMove":
                    self._move(action, held)
                elif kind in ("pointerDown", "pointerUp"):
                    held = int(kind == "pointerDown")
                    self._mouse("mousePressed" if held else "mouseReleased", held)
                elif kind == "pause":
                    time.sleep(action.get("duration", 0) / 1000)

    def _move(self, action: dict[str, Any], held: int) -> None:
        origin, at = action.get("origin", "viewport"), (0.0, 0.0)
        if isinstance(origin, dict):
            at = self._call(CENTER, [], origin[ELEMENT])
        elif origin == "pointer":
            at = self.pointer
        self.pointer = at[0] + action["x"], at[1] + action["y"]
        self._mouse("mouseMoved", held)

    # ---- commands

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        """Execute a command of Selenium."""
        name = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", command)
        answer = getattr(self, f"_on_{name}", None)
        if answer is None:
            raise WebDriverException(f"{command} is not known without chromedriver. Add it to helpers.devtools.")
        return {"value": answer(params or {})}

    def _on_new_session(self, params: dict[str, Any]) -> Any:
        return {"sessionId": "devtools", "capabilities": {}}

    def _on_quit(self, params: dict[str, Any]) -> None:
        self.send("Browser.close", tab=False)

    def close(self) -> None:
        """Wait until Chromium has ended."""
        self.process.wait(timeout=600)
        self.socket.close()

    def _on_get(self, params: dict[str, Any]) -> None:
        self.is_loaded = False
        found = self.send("Page.navigate", {"url": params["url"]})
        if found.get("errorText"):
            raise WebDriverException(found["errorText"])
        while not self.is_loaded:
            self._note(json.loads(self.socket.recv()))

    def _on_w3c_execute_script(self, params: dict[str, Any]) -> Any:
        return self._call(f"function() {{ {params['script']} }}", params["args"])

    def _on_w3c_execute_script_async(self, params: dict[str, Any]) -> Any:
        return self._call(ASYNC % params["script"], params["args"])

    def _on_find_element(self, params: dict[str, Any]) -> Any:
        found = self._call("function(css) { return document.querySelector(css); }", [params["value"]])
        if found is None:
            raise NoSuchElementException(params["value"])
        return found

    def _on_find_elements(self, params: dict[str, Any]) -> Any:
        return self._call("function(css) { return [...document.querySelectorAll(css)]; }", [params["value"]])

    def _on_click_element(self, params: dict[str, Any]) -> None:
        self._click(params["id"])

    def _on_send_keys_to_element(self, params: dict[str, Any]) -> None:
        self._call("function() { this.focus(); }", [], params["id"])
        self._type(params["text"])

    def _on_get_element_text(self, params: dict[str, Any]) -> Any:
        return self._call("function() { return this.innerText; }", [], params["id"])

    def _on_get_element_rect(self, params: dict[str, Any]) -> Any:
        return self._call("function() { return this.getBoundingClientRect().toJSON(); }", [], params["id"])

    def _on_actions(self, params: dict[str, Any]) -> None:
        self._perform(params["actions"])

    def _on_get_title(self, params: dict[str, Any]) -> Any:
        return self._call("function() { return document.title; }", [])

    def _on_get_current_url(self, params: dict[str, Any]) -> Any:
        return self._call("function() { return location.href; }", [])

    def _on_screenshot(self, params: dict[str, Any]) -> Any:
        return self.send("Page.captureScreenshot")["data"]

    def _on_w3c_get_current_window_handle(self, params: dict[str, Any]) -> str:
        return self.handle

    def _on_w3c_get_window_handles(self, params: dict[str, Any]) -> list[str]:
        return list(self.sessions)

    def _on_new_window(self, params: dict[str, Any]) -> Any:
        before = self.handle
        handle, self.handle = self._new_tab(), before
        return {"handle": handle, "type": "tab"}

    def _on_switch_to_window(self, params: dict[str, Any]) -> None:
        self.handle = params["handle"]
        self.send("Target.activateTarget", {"targetId": self.handle}, tab=False)

    def _on_close(self, params: dict[str, Any]) -> None:
        self.send("Target.closeTarget", {"targetId": self.handle}, tab=False)
        del self.sessions[self.handle]

    def _on_set_timeouts(self, params: dict[str, Any]) -> None:
        """There is none here but that of the connection."""

    def _on_get_log(self, params: dict[str, Any]) -> list[dict[str, str]]:
        self.send("Runtime.evaluate", {"expression": "0"})  # so that events before it have arrived
        found, self.logs = self.logs, []
        return found

    def _on_execute_cdp_command(self, params: dict[str, Any]) -> Any:
        return self.send(params["cmd"], params["params"])


def _argument(value: Any) -> dict[str, Any]:
    return {"objectId": value[ELEMENT]} if isinstance(value, dict) and ELEMENT in value else {"value": value}


class Browser(webdriver.Remote):
    """Selenium's interface to `DevTools`, with the methods that are Chromium's own."""

    def __init__(self, chromium: str, arguments: list[str], profile: Path) -> None:
        super().__init__(DevTools(chromium, arguments, profile), options=webdriver.ChromeOptions())

    def _remote_url(self) -> str:
        return ""

    def execute_cdp_cmd(self, cmd: str, cmd_args: dict[str, Any]) -> Any:
        """Send a command of the DevTools protocol."""
        return self.execute("executeCdpCommand", {"cmd": cmd, "params": cmd_args})["value"]

    def get_log(self, log_type: str) -> Any:
        """What pages complained about since the last call."""
        return self.execute(Command.GET_LOG, {"type": log_type})["value"]
