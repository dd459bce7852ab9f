// Opens a browser, and looks at the dashboard with it.

import { chromium } from "playwright-core";

import { PATIENCE } from "./service.mjs";

const { CHROMIUM = "/usr/bin/chromium" } = process.env;

/** A browser; root may not have Chromium's sandbox. */
export const browser = () =>
  chromium.launch({ executablePath: CHROMIUM, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });

/**
 * A page that looks at nothing yet, and `faults`: what it should not have done. Failed requests that a test
 * provokes are allowed for as long as `allow(pattern)` says so.
 */
export async function visitor(browser, service, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const faults = [];
  let allowed = null;
  const home = new URL(service.dashboard).host;
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    if (!allowed?.test(message.text())) faults.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => faults.push(`uncaught: ${error.stack}`));
  page.on("request", (request) => {
    if (!["data:", "blob:"].includes(new URL(request.url()).protocol) && new URL(request.url()).host !== home) {
      faults.push(`asked elsewhere: ${request.url()}`);
    }
  });
  await page.exposeFunction("cspViolated", (what) => faults.push(`CSP: ${what}`));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) =>
      window.cspViolated(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
  });
  return { page, faults, allow: (pattern) => (allowed = pattern) };
}
