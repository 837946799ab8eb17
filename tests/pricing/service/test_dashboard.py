"""The dashboard in a real browser: what it shows, by keyboard, on a phone, without the network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from running_server import RunningServer, running, wait_until
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService, Keys
from selenium.webdriver.common.by import By
from service_world import NAMES, World, make_world, unit

from doseforest.pricing.service.storage.databases import sqlite_url

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FOCUSED = "return document.activeElement.id || document.activeElement.tagName.toLowerCase()"
LABEL = "own.getAttribute('aria-label')"
SECTIONS = ["policy", "experiment", "time", "curves", "doses", "overlap", "drift"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    # Whatever is not on this machine does not exist.
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = Chrome(options=options, service=ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, RunningServer]]:
    """A service with a day's work behind it: decisions, outcomes, an experiment, drift."""
    folder = tmp_path_factory.mktemp("dashboard")
    world = make_world(folder, sqlite_url(folder / "decisions.sqlite"))
    world.publish("forest")
    world.publish("control", active=False)
    with running(world) as server:
        rng = np.random.default_rng(0)
        with httpx.Client(base_url=server.url, headers=world.headers("admin")) as client:
            work(client, rng, shift=0.0)
            arms = [
                {"name": "control", "version": 2, "share": 0.5},
                {"name": "forest", "version": 1, "share": 0.5},
            ]
            sent = {"name": "forest or nothing", "arms": arms}
            client.post("/v1/experiments", json=sent).raise_for_status()
            work(client, rng, shift=1.5)
        yield world, server
    world.database.dispose()


def work(client: httpx.Client, rng: np.random.Generator, shift: float) -> None:
    x0 = np.clip(rng.uniform(0, 2.5, 600) + shift, 0, 4)
    units = [unit(f"u{k}-{shift}", float(x), cell=f"c{k % 90}") for k, x in enumerate(x0)]
    answer = client.post("/v1/decisions", json={"units": units})
    outcomes = [
        {"decision_id": own["decision_id"], "value": float(x * own["dose"] + rng.normal(2, 1))}
        for own, x in zip(answer.json()["decisions"], x0, strict=True)
    ]
    client.post("/v1/outcomes", json={"outcomes": outcomes}).raise_for_status()


def sign_in(browser: Chrome, shown: tuple[World, RunningServer], key: str | None = None) -> None:
    world, server = shown
    browser.get(f"{server.url}/dashboard")
    browser.execute_script("sessionStorage.clear()")
    browser.get(f"{server.url}/dashboard")
    wait_until(lambda: browser.switch_to.active_element.get_attribute("id") == "key")
    typed = world.keys["report"] if key is None else key
    browser.switch_to.active_element.send_keys(typed, Keys.ENTER)  # no mouse


def text(browser: Chrome, name: str) -> str:
    return browser.find_element(By.ID, name).text


def keep(browser: Chrome, name: str) -> None:
    """Screenshots for those who want to look, where SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        height = browser.execute_script("return document.documentElement.scrollHeight")
        width = browser.execute_script("return innerWidth")
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        Path(folder, f"{name}.png").write_bytes(browser.get_screenshot_as_png())
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def complaints(browser: Chrome) -> list[Any]:
    return [own["message"] for own in browser.get_log("browser") if own["level"] == "SEVERE"]


def test_the_dashboard_shows_what_is_there(
    browser: Chrome, shown: tuple[World, RunningServer]
) -> None:
    browser.set_window_size(1280, 1000)
    complaints(browser)
    sign_in(browser, shown)
    wait_until(lambda: "Up to date" in text(browser, "status"))
    keep(browser, "desk")
    assert "Version 1" in text(browser, "policy")
    assert "1200" in text(browser, "time")
    assert "forest or nothing (running)" in text(browser, "experiment")
    assert "Sample ratio holds" in text(browser, "experiment")
    assert "95 % intervals" in text(browser, "experiment")
    assert "of recent units" in text(browser, "curves")
    told = each(browser, "#drift tbody tr", "own.textContent")
    assert any(own.startswith("x0") and own.endswith("drifted") for own in told)
    assert any(own.startswith("x1") and own.endswith("steady") for own in told)
    for name in SECTIONS[1:]:  # every chart says in words what it is
        charts = f"#{name} > svg"
        assert set(each(browser, charts, "own.getAttribute('role')")) <= {"img"}
        assert all(len(own) > 10 for own in each(browser, charts, LABEL))
    assert complaints(browser) == []


def press(browser: Chrome, selector: str, keys: str) -> None:
    """Press keys on an element; anew where the page has just been drawn again."""
    for _ in range(10):
        try:
            browser.find_element(By.CSS_SELECTOR, selector).send_keys(keys)
            return
        except StaleElementReferenceException:
            continue
    pytest.fail(f"{selector} is drawn again all the time")


def each(browser: Chrome, selector: str, asked: str) -> list[str]:
    """What is asked of all such elements, in one step: the page may be drawn again between two."""
    found = f"[...document.querySelectorAll(arguments[0])].map(own => {asked})"
    return list(browser.execute_script(f"return {found}", selector))


def text_of(browser: Chrome, selector: str) -> str:
    """Text of an element as it is now."""
    return next(iter(each(browser, selector, "own.textContent")), "")


def test_everything_is_reached_by_keyboard(
    browser: Chrome, shown: tuple[World, RunningServer]
) -> None:
    sign_in(browser, shown)
    wait_until(lambda: "Up to date" in text(browser, "status"))
    seen = set()
    browser.execute_script("document.body.focus()")
    for _ in range(25):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        seen.add(browser.execute_script(FOCUSED))
    assert {"leave", "hours", "feature", "summary"} <= seen
    press(browser, "#hours", "7")
    wait_until(lambda: "." in text_of(browser, "#time svg"))
    press(browser, "#doses summary", Keys.ENTER)
    assert "Decisions" in text_of(browser, "#doses table")
    press(browser, "#leave", Keys.ENTER)
    wait_until(lambda: browser.execute_script(FOCUSED) == "key")
    assert not browser.find_element(By.ID, "main").is_displayed()


def test_it_fits_a_phone(browser: Chrome, shown: tuple[World, RunningServer]) -> None:
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        sign_in(browser, shown)
        wait_until(lambda: "Up to date" in text(browser, "status"))
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 360
        small = browser.execute_script(
            "return [...document.querySelectorAll('button, select')]"
            ".filter(own => own.offsetParent && own.getBoundingClientRect().height < 38).length"
        )
        assert small == 0  # large enough for a finger
        keep(browser, "phone")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_wrong_key_is_told_so_and_shows_nothing(
    browser: Chrome, shown: tuple[World, RunningServer]
) -> None:
    sign_in(browser, shown, key="df_00000000_nonsense")
    wait_until(lambda: "not valid" in text(browser, "refusal"))
    assert not browser.find_element(By.ID, "main").is_displayed()
    assert text(browser, "status") == "Not signed in"
    complaints(browser)


def test_doses_of_several_components_are_shown(browser: Chrome, tmp_path: Path) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    world.publish("joint")
    browser.set_window_size(1280, 1000)
    complaints(browser)
    with running(world) as server:
        units = [unit(f"u{k}", x) for k, x in enumerate(np.linspace(0, 4, 60).tolist())]
        sent, url = {"units": units}, f"{server.url}/v1/decisions"
        httpx.post(url, json=sent, headers=world.headers()).raise_for_status()
        sign_in(browser, (world, server))
        wait_until(lambda: "Up to date" in text(browser, "status"))
        keep(browser, "components")
        assert "express, premium" in text(browser, "policy")
        assert "(0, 0), (0, 5), (5, 0), (5, 5)" in text(browser, "policy")
        assert "Doses are (express, premium)." in text(browser, "doses")
        assert "(5, 5)" in text_of(browser, "#doses svg")
        told = each(browser, "#curves > svg", LABEL)
        assert [own.split(",")[0] for own in told] == [
            f"Average response to each {name}" for name in NAMES
        ]
        assert "60" in text(browser, "time")
        assert complaints(browser) == []
    world.database.dispose()
