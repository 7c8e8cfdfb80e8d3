// Shared by the tests of the web page: a server, Chromium, and what a person does with the page. Exits with 77 where
// Chromium or playwright-core is missing; in CI that is a failure.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(file => fs.existsSync(file));
const missing = why => {
  console.error(`skipped: ${why} (./dev install browser)`);
  process.exit(process.env.CI ? 1 : 77);
};
const playwright = await import('playwright-core').catch(() => missing('playwright-core is not installed'));
if (!CHROMIUM) missing('Chromium is not installed');

const [program, screenshots] = process.argv.slice(2);
fs.mkdirSync(screenshots, {recursive: true});
export const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'inferno-page-'));
process.on('exit', () => fs.rmSync(folder, {recursive: true, force: true}));

export const browser = await playwright.chromium.launch({executablePath: CHROMIUM, args: ['--no-sandbox']});

// `inferno serve` with the built-in model on a free port, or on that of a server before.
export async function serve(...options) {
  const env = {PATH: process.env.PATH, HOME: folder, HF_HUB_OFFLINE: '1'};
  const port = options.includes('--port') ? [] : ['--port', '0'];
  const child = spawn(program, ['serve', ...port, ...options], {env, stdio: ['ignore', 'pipe', 'pipe']});
  let said = '', isStopped = false;
  const ended = new Promise(resolve => child.on('exit', (status, signal) => {
    if (!isStopped || status !== 0) console.error(`inferno serve ended with ${signal ?? status}: ${said}`);
    resolve(signal ?? status);
  }));
  const url = await new Promise((resolve, reject) => {
    const listen = piece => {
      said += piece;
      const found = said.match(/http:\/\/127\.0\.0\.1:\d+/);
      if (found) resolve(found[0]);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    ended.then(status => reject(new Error(`inferno serve ended with ${status}: ${said}`)));
  });
  return {url, port: new URL(url).port, async stop() {
    isStopped = true;
    child.kill('SIGTERM');
    assert.equal(await ended, 0, 'status of inferno serve');
  }};
}

// A tab of a browser of its own. `outside` has the addresses of requests to other servers, `errors` what the page did
// wrong: errors of its script and violations of its content security policy.
export async function open(url, options = {}) {
  const context = await browser.newContext({acceptDownloads: true, ...options});
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const outside = [], errors = [];
  context.on('request', request => {
    if (!request.url().startsWith(url + '/') && !/^(blob|data):/.test(request.url())) outside.push(request.url());
  });
  page.on('pageerror', error => errors.push(String(error)));
  page.on('console', message => {
    // The browser itself reports every response of 400 and above.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) errors.push(message.text());
  });
  page.on('dialog', dialog => { errors.push('dialog: ' + dialog.message()); dialog.dismiss(); });
  await page.goto(url);
  return new Tab(context, page, outside, errors);
}

class Tab {
  constructor(context, page, outside, errors) {
    Object.assign(this, {context, page, outside, errors});
    this.text = page.getByRole('textbox', {name: 'Message', exact: true});
    this.answers = page.getByRole('article', {name: 'Answer'});
    this.questions = page.getByRole('article', {name: 'Your message'});
    this.stop = page.getByRole('button', {name: 'Stop'});
  }

  async ready() {
    await this.page.locator('#model').filter({hasText: /./}).waitFor();
  }

  async write(text) {
    await this.text.fill(text);
    await this.page.keyboard.press('Enter');
  }

  // Waits until no answer is being written; returns the words of the last one.
  async answered(timeout = 30_000) {
    await this.page.locator('article.answer').last().waitFor();
    await this.page.waitForFunction(() => !document.querySelector('[aria-busy=true]') && document.querySelector('#stop').hidden, null, {timeout});
    return this.page.locator('article.answer > .markdown').last().innerText();
  }

  async ask(text) {
    await this.write(text);
    return this.answered();
  }

  // Changes the fields of requests before they reach the server.
  async alterRequests(fields) {
    await this.page.route('**/v1/chat/completions', route =>
      route.continue({postData: JSON.stringify({...route.request().postDataJSON(), ...fields})}));
  }

  // Answers requests in the browser with these chunks, for what the built-in model does not write.
  async script(...chunks) {
    await this.page.route('**/v1/chat/completions', route => route.fulfill({
      contentType: 'text/event-stream',
      body: [...chunks.map(chunk => JSON.stringify(chunk)), '[DONE]'].map(data => `data: ${data}\n\n`).join(''),
    }));
  }

  async screenshot(name) {
    await this.page.screenshot({path: path.join(screenshots, name + '.png')});
  }

  close() { return this.context.close(); }
}

export const delta = fields => ({choices: [{index: 0, delta: fields, finish_reason: null}], usage: null});
export const finish = (reason, usage = {prompt_tokens: 10, completion_tokens: 5, total_tokens: 15}) =>
  ({choices: [{index: 0, delta: {}, finish_reason: reason}], usage});
