// The dashboard in a real browser, in front of a real service.
//
// `tests/dashboard/run` drives the debug binary, or the one that REFRAIN_BIN names. DASHBOARD_DEV=1 takes the files from src/server/dashboard instead of the binary. Pictures are kept in target/dashboard.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { provider } from "./provider.mjs";
import { PATIENCE, Service, until } from "./service.mjs";
import { browser, visitor } from "./visitor.mjs";

const PICTURES = process.env.DASHBOARD_PICTURES ?? fileURLToPath(new URL("../../target/dashboard", import.meta.url));
const QUESTION = "How do I reset my password?";
const IN_OTHER_WORDS = "How can I reset my password?";

let chromium;
before(async () => {
  await mkdir(PICTURES, { recursive: true });
  chromium = await browser();
});
after(() => chromium?.close());

/** Gives the body a service and a page that looks at it, and sees to it that the page did nothing wrong. */
function night(name, options, body) {
  test(name, { timeout: 5 * PATIENCE }, async (context) => {
    const service = await Service.start(options);
    context.after(() => service.stop());
    const visit = await visitor(chromium, service);
    context.after(() => visit.page.context().close());
    await body({ service, ...visit, $: (selector) => visit.page.locator(selector) });
    assert.deepEqual(visit.faults, []);
  });
}

async function picture(page, name, { scheme = "light", width = 1280 } = {}) {
  await page.emulateMedia({ colorScheme: scheme });
  await page.setViewportSize({ width, height: width < 500 ? 780 : 900 });
  await page.evaluate(() => {
    document.activeElement.blur();
    scrollTo({ top: 0, behavior: "instant" });
  });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}

/** The text of the element is this, or matches this, sooner or later. */
async function says(locator, wanted) {
  const right = (text) => (wanted instanceof RegExp ? wanted.test(text) : text === wanted);
  let text;
  await until(`${locator} says ${wanted}`, async () => right((text = (await locator.textContent()).trim())))
    .catch((error) => assert.fail(`${error.message}; it says ${JSON.stringify(text)}`));
}

/** Presses Tab until the element has the focus: who has no mouse gets there. */
async function tabTo(page, locator) {
  for (let press = 0; press < 150; press += 1) {
    if (await locator.evaluate((node) => node === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${locator} cannot be reached with Tab`);
}

async function logIn({ page, service, $, allow }) {
  allow(/status of 401/);
  await page.goto(service.dashboard);
  await $("#login[open]").waitFor();
  await page.keyboard.type(service.token);
  await page.keyboard.press("Enter");
  await $("body[data-link=live]").waitFor();
  allow(null);
}

describe("the dashboard", () => {
  night("asks for the token once, and says when it is wrong", {}, async ({ service, page, $, allow }) => {
    allow(/status of 401/);
    await page.goto(service.dashboard);
    await $("#login[open]").waitFor();
    assert.ok(await $("#token").evaluate((node) => node === document.activeElement));
    await page.keyboard.press("Escape");
    assert.ok(await $("#login[open]").isVisible(), "there is nothing to see without a token");
    await page.keyboard.type("a guess");
    await page.keyboard.press("Enter");
    await says($("#login [role=alert]"), "That is not this service's token.");
    await page.screenshot({ path: join(PICTURES, "login.png") });
    await page.keyboard.type("пароль");
    await page.keyboard.press("Enter");
    await says($("#login [role=alert]"), "A token has only ASCII characters.");
    await page.keyboard.press("Control+A");
    await page.keyboard.type(service.token);
    await page.keyboard.press("Enter");
    await $("body[data-link=live]").waitFor();
    allow(null);

    // This tab knows it now, and forgets it when told to.
    await page.reload();
    await $("body[data-link=live]").waitFor();
    assert.equal(await $("#login[open]").count(), 0);
    assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);
    allow(/status of 401/);
    await $("#forget").click();
    await $("#login[open]").waitFor();
  });

  night("shows a miss and then hits", {}, async (night) => {
    const { service, page, $ } = night;
    await logIn(night);
    await says($("#no-requests-words"), /^No requests in the last hour yet/);
    await says($("#curl"), /chat\/completions/);
    await says($("#hit-rate-value"), "–");
    await says($("#attention-words"), /^All quiet/);
    await picture(page, "empty");
    await picture(page, "empty-360", { width: 360 });

    // From here on nothing moves that somebody may be reading.
    await page.evaluate(() => {
      window.moved = 0;
      new PerformanceObserver((moves) => moves.getEntries().forEach((move) => (window.moved += move.value)))
        .observe({ type: "layout-shift" });
    });
    const outcome = (name) => $("#requests-legend li").filter({ hasText: name }).locator("b");
    assert.match(await service.ask(QUESTION), /fwd=miss/);
    await says(outcome("miss"), "1");
    await says($("#requests-value"), "1");
    await says($("#hit-rate-value"), "0.0 %");
    assert.equal(await $("#no-requests").isVisible(), false);
    await service.written(1);

    assert.match(await service.ask(QUESTION), /detail=exact/);
    await says(outcome("exact"), "1");
    await says($("#hit-rate-value"), "50.0 %");
    assert.match(await service.ask(IN_OTHER_WORDS), /detail=semantic/);
    await says(outcome("semantic"), "1");
    await says($("#hit-rate-value"), "66.7 %");
    await says($("#latency-rows tr").filter({ hasText: "exact" }).locator("td").first(), "1");
    await says($("#targets-rows th"), "rules / faq");
    await says($("#namespaces-rows td[data-label=Stored]"), "1");
    assert.ok((await page.evaluate(() => window.moved)) < 0.02, "the page stays where it is");

    // The bars, without a mouse and without eyes.
    const chart = $("#requests-chart");
    await tabTo(page, chart);
    await page.keyboard.press("End");
    const value = () => chart.getAttribute("aria-valuetext");
    assert.match(await value(), /^from \d\d:\d\d: exact \d, semantic \d, coalesced 0, miss \d/);
    await page.keyboard.press("Home");
    assert.match(await value(), /exact –/, "before the start is not the same as nothing");
    await page.keyboard.press("Escape");
    assert.match(await value(), /^last hour: exact 1, semantic 1, coalesced 0, miss 1/);

    // What is over stays where it was when another range is asked for.
    await page.getByText("15 min", { exact: true }).click();
    await says($("#requests-when"), "last 15 minutes");
    await says(outcome("exact"), "1");
    assert.match(await value(), /^last 15 minutes: exact 1, semantic 1, coalesced 0, miss 1/);
  });

  night("explains a question", { config: '[namespaces."人事"]' }, async (night) => {
    const { service, page, $ } = night;
    await logIn(night);
    await service.ask(QUESTION);
    await service.written(1);
    const explain = async (question) => {
      await $("#explain-question").fill(question);
      await page.keyboard.press("Control+Enter");
    };
    await explain(QUESTION);
    await says($("#explain-outcome"), "Hit, to the letter");
    await explain(IN_OTHER_WORDS);
    await says($("#explain-outcome"), "Hit, in other words");
    await says($("#candidates-rows th"), QUESTION);
    await says($("#candidates-rows td[data-label=Verdict]"), "same question");
    await explain("How do I reset my phone?");
    await says($("#explain-outcome"), "Miss: goes to the LLM");
    await says($("#explain-why"), /^The nearest question is refused by /);
    assert.match(await $("#ruler").getAttribute("aria-label"), /^Similarities 0\.\d+; threshold 0\.\d+$/);
    await explain("What is new today?");
    await says($("#explain-why"), /time_bound/);
    await $("#explain-namespace").selectOption("人事");
    await explain(QUESTION);
    await says($("#explain-outcome"), "Miss: goes to the LLM");
    await says($("#explain-facts dd").first(), "人事, epoch 0");
    await $("#explain-model").fill("nobody serves this");
    night.allow(/status of 404/);
    await explain(QUESTION);
    await says($("#explain-wrong"), /nobody serves this/);
    // It was no request.
    assert.equal((await service.operate("/stats")).totals.requests, 1);
  });

  night("evicts a namespace without a mouse: dry run, confirmation, done", { config: "[namespaces.hr]" }, async (night) => {
    const { service, page, $ } = night;
    await logIn(night);
    await service.ask(QUESTION, { headers: { "x-refrain-tags": "kb:it" } });
    await service.ask("How do I book leave?", { headers: { "x-refrain-namespace": "hr" } });
    await service.written(2);
    const evict = page.getByRole("button", { name: "Evict answers of the namespace default" });
    const enter = () => page.keyboard.press("Enter");
    await tabTo(page, evict);
    await enter();
    await $("#evict[open]").waitFor();
    await page.keyboard.press("Escape");
    await $("#evict").waitFor({ state: "hidden" });
    assert.ok(await evict.evaluate((node) => node === document.activeElement), "the focus is where it was");

    // One that would take nothing.
    await enter();
    await tabTo(page, $("#evict-tag"));
    await page.keyboard.type("kb:hr");
    await enter();
    await says($("#evict-result"), "0 answers would go from the store, 0 from memory.");
    assert.equal(await $("#evict-sure").isVisible(), false);
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");

    // The whole namespace.
    await enter();
    await says($("#evict-result"), "1 answer would go from the store, 1 from memory.");
    await says($("#evict-send"), "Evict 1 answer");
    await until("the name is asked for", () => $("#evict-name").evaluate((node) => node === document.activeElement));
    await page.keyboard.type("defau");
    await enter();
    assert.ok(await $("#evict-send").isDisabled());
    assert.equal((await service.operate("/stats")).layers.semantic.entries, 2, "nothing is gone yet");
    await page.screenshot({ path: join(PICTURES, "evict.png") });
    await page.keyboard.type("lt");
    await enter();
    await says($("#notices"), /^Evicted from default: 1 answer from the store, 1 from memory\./);
    await $("#evict").waitFor({ state: "hidden" });
    await service.written(1);
    await says($("#namespaces-rows tr").filter({ hasText: "default" }).locator("td[data-label=Stored]"), "0");
    assert.match(await service.ask(QUESTION), /fwd=miss/);
    assert.match(await service.ask("How do I book leave?", { headers: { "x-refrain-namespace": "hr" } }), /detail=exact/);
  });

  night("flips a switch and shows who did it and why", {}, async (night) => {
    const { service, page, $, allow } = night;
    await logIn(night);
    await service.ask(QUESTION);
    await service.written(1);
    const row = $("#switches-rows tr").filter({ hasText: "semantic" });
    await page.getByRole("button", { name: "Switch off feature:semantic" }).click();
    await page.keyboard.type("wrong hits since midnight");
    await $("#flip-by").fill("night shift");
    await $("#flip-for").selectOption("2h");
    await page.screenshot({ path: join(PICTURES, "flip.png") });
    await $("#flip-by").press("Enter");
    await says(row.locator("td").first(), "off");
    await says(row, /wrong hits since midnight.*night shift, since .*, until /);
    await says($("#attention-list"), "feature:semantic switched off by night shift");
    assert.equal((await service.operate("/admin/switches")).switches[0].target, "feature:semantic");
    assert.match(await service.ask(IN_OTHER_WORDS), /fwd=miss/);

    await page.getByRole("button", { name: "Clear feature:semantic" }).click();
    assert.equal(await $("#flip-by").inputValue(), "night shift");
    await page.keyboard.type("fixed");
    await page.keyboard.press("Enter");
    await says(row.locator("td").first(), "on");
    await says($("#attention-words"), /^All quiet/);
    await $("#changes summary").click();
    await says($("#changes-rows tr").first(), /feature:semanticclearednight shiftfixed$/);
    assert.equal(await $("#changes-rows tr").count(), 2);

    // Names with slashes, and names that are not there.
    allow(/status of 404/);
    await $("#switch-other").click();
    await page.keyboard.type("provider:opnai");
    await $("#flip-reason").fill("a slip of the pen");
    await page.keyboard.press("Enter");
    await says($("#flip [role=alert]"), /there is no provider "opnai"/);
    allow(null);
    await $("#flip-target").fill("target:rules/a/b");
    await page.keyboard.press("Enter");
    await says($("#notices .warn"), /no line of the config has this model/);
    await page.getByRole("button", { name: "Clear target:rules/a/b" }).click();
    await page.keyboard.type("fixed");
    await page.keyboard.press("Enter");
    await $("#switches-rows tr").filter({ hasText: "rules/a/b" }).waitFor({ state: "detached" });
  });

  night("says when the service is gone, and goes on when it is back", {}, async (night) => {
    const { service, page, $, allow } = night;
    await logIn(night);
    await service.ask(QUESTION);
    await says($("#requests-value"), "1");
    allow(/Failed to load resource|status of 401/);
    await service.down();
    await says($("#lost-words"), /^Refrain does not answer since \d\d:\d\d:\d\d: no connection\./);
    await says($("#link-words"), "Lost");
    await says($("#requests-value"), "1");
    await says($("#attention-words"), "How things stand is not known.");
    await picture(page, "lost");
    await service.up();
    await says($("#link-words"), "Live");
    assert.equal(await $("#lost").isVisible(), false);
    // What was counted is forgotten at a restart, what was stored is not.
    await says($("#requests-value"), "0");
    assert.match(await service.ask(QUESTION), /detail=exact/);
    await says($("#hit-rate-value"), "100.0 %");
  });

  night("asks for nothing while nobody looks", {}, async (night) => {
    const { page, $ } = night;
    await page.clock.install();
    await page.addInitScript(() => {
      window.away = false;
      Object.defineProperty(document, "hidden", { get: () => window.away });
      window.look = (away) => {
        window.away = away;
        document.dispatchEvent(new Event("visibilitychange"));
      };
    });
    await logIn(night);
    let asked = 0;
    page.on("request", () => (asked += 1));
    const idle = () => page.waitForFunction(() => document.body.dataset.link === "live");
    await page.clock.runFor(2_000);
    await until("it asks every two seconds", () => asked >= 3);
    await page.evaluate(() => window.look(true));
    await page.waitForLoadState("networkidle");
    await idle();
    asked = 0;
    await page.clock.runFor(600_000);
    assert.equal(asked, 0);
    await page.evaluate(() => window.look(false));
    await until("it asks at once", () => asked >= 3);
    await says($("#link-words"), "Live");
  });

  night("asks for no token where there is none", { token: null }, async ({ service, page, $ }) => {
    await page.goto(service.dashboard);
    await $("body[data-link=live]").waitFor();
    assert.equal(await $("#login[open]").count(), 0);
    assert.equal(await $("#forget").isVisible(), false);
    // A POST without a token must show that it comes from the service's own page.
    await $("#explain-question").fill(QUESTION);
    await $("#explain-send").click();
    await says($("#explain-outcome"), "Miss: goes to the LLM");
  });

  test("shows a bad night at a glance", { timeout: 5 * PATIENCE }, async (context) => {
    const upstream = await provider(({ model, key }) => {
      if (key === "revoked") return { status: 401 };
      return model === "ill" ? { status: 500 } : { delay: 20 };
    });
    context.after(() => upstream.close());
    const config = `
      [providers.cloud]
      kind = "openai"
      url = "${upstream.url}"
      api_keys = ["env:GOOD", "env:REVOKED"]
      region = "eu"
      [models.default]
      targets = [{ provider = "cloud", model = "gpt-4o-mini" }, { provider = "rules", model = "faq" }]
      [models.ill]
      targets = [{ provider = "cloud", model = "ill" }]
      [namespaces.hr]`;
    const service = await Service.start({ config, environment: { GOOD: "good", REVOKED: "revoked" } });
    context.after(() => service.stop());
    const night = await visitor(chromium, service);
    context.after(() => night.page.context().close());
    const { page, faults } = night;
    const $ = (selector) => page.locator(selector);
    await logIn({ ...night, service, $ });

    const tasks = ["reset my password", "book leave", "order a laptop", "join the VPN", "change my photo", "report a bug"];
    for (const [round, form] of ["How do I", "How can I", "How do I"].entries()) {
      for (const task of tasks) await service.ask(`${form} ${task}?`, { stream: round < 2 });
    }
    const cases = Array.from({ length: 14 }, (_, n) => `Does case ${n} still wait?`);
    await Promise.all(cases.map((question) => service.ask(question, { model: "ill", stream: true })));
    await service.ask("How do I book leave?", { headers: { "x-refrain-namespace": "hr" } });

    const target = (name) => $("#targets-rows tr").filter({ hasText: name });
    await says(target("cloud / ill").locator("td[data-label=Breaker]"), /^open for .*error rate/);
    await says(target("cloud / ill").locator("td[data-label=Alerts]"), /^error rate \d/);
    await says(target("gpt-4o-mini").locator("td[data-label='First content p50']"), /^\d.* ms$/);
    await says($("#providers-rows tr").filter({ hasText: "cloud" }).locator("td[data-label=Keys]"), /^1 of 2 keys ready.*key 2 quarantined \(auth\)/);
    await says($("#attention-list"), /cloud\/ill breaker open/);
    await says($("#money-value"), /^\$0\.\d+/);

    await page.getByRole("button", { name: "Take hold of the breaker of cloud/ill" }).click();
    await page.getByRole("radio", { name: "isolated" }).check();
    await page.screenshot({ path: join(PICTURES, "breaker.png") });
    await page.keyboard.press("Enter");
    await says(target("cloud / ill").locator("td[data-label=Breaker]"), /^isolated/);

    await $("#explain-question").fill("How might I join the VPN?");
    await $("#explain-send").click();
    await $("#explain-result").waitFor();
    await says($("#namespaces-rows tr").filter({ hasText: "default" }).locator("td[data-label=Stored]"), /^[1-9]/);
    await page.getByRole("button", { name: "Close this notice" }).click();
    await picture(page, "light");
    await picture(page, "dark", { scheme: "dark" });
    for (const [name, scheme] of [["light-360", "light"], ["dark-360", "dark"]]) {
      await picture(page, name, { scheme, width: 360 });
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(beyond, 0, "nothing lies beyond the edge at 360 px");
    }
    assert.deepEqual(faults, []);
  });

  night("is served with its policy", {}, async ({ service }) => {
    for (const path of ["", "/app.js", "/style.css", "/vendor/uplot.iife.min.js"]) {
      const reply = await fetch(service.dashboard + path);
      assert.equal(reply.status, 200, path);
      const policy = reply.headers.get("content-security-policy");
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
      assert.doesNotMatch(policy, /unsafe|\*/);
      assert.equal(reply.headers.get("x-content-type-options"), "nosniff");
      assert.equal(reply.headers.get("referrer-policy"), "no-referrer");
    }
    assert.equal((await fetch(`${service.dashboard}/nothing.js`)).status, 404);
  });
});
