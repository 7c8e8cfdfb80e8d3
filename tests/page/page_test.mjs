// The web page in Chromium, served by `inferno serve` with the built-in model: page_test.mjs INFERNO SCREENSHOTS
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {after, afterEach, test} from 'node:test';

import {browser, delta, finish, folder, open, serve} from './scene.mjs';

const server = await serve();
const tabs = [];

async function tab(options = {}, url = server.url) {
  const made = await open(url, options);
  tabs.push(made);
  return made;
}

async function ready(options) {
  const made = await tab(options);
  await made.ready();
  return made;
}

// Whatever a test did: no request left the origin, no error, no violation of the policy.
afterEach(async () => {
  for (const one of tabs.splice(0)) {
    await one.close();
    assert.deepEqual(one.outside, [], 'requests to other servers');
    assert.deepEqual(one.errors, [], 'errors on the page');
  }
});

after(async () => {
  await browser.close();
  await server.stop();
});

test('the response forbids everything but the page itself', async () => {
  const response = await fetch(server.url);
  const policy = response.headers.get('content-security-policy');
  assert.match(policy, /default-src 'none'.*connect-src 'self'.*frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  const again = await fetch(server.url, {headers: {'If-None-Match': response.headers.get('etag')}});
  assert.equal(again.status, 304);
});

test('sends a message and shows the answer with its numbers', async () => {
  const t = await ready();
  await t.screenshot('empty');
  const answer = await t.ask('Tell me a story about a robot.');
  assert.ok(answer.length > 20, answer);
  assert.match(await t.page.locator('.stats').innerText(), /\d+ tokens · [\d,.]+ tokens\/s · first token after [\d.]+ s/);
  assert.match(await t.page.locator('#context').innerText(), /Context \d+ of 2,048 tokens \(\d+%\)/);
  assert.equal(await t.page.getByRole('meter', {name: 'Context used'}).count(), 1);
  await t.screenshot('answer');
});

test('shows the answer while it is being written, and stops', async () => {
  const t = await ready();
  await t.alterRequests({ignore_eos: true, min_tokens: 1900});
  await t.write('Tell me a long story.');
  const shown = t.page.locator('article.answer > .markdown');
  // Both lengths are read in the page: the answer takes two seconds, which a busy machine may need to ask for one.
  await t.page.waitForFunction(() => {
    const length = document.querySelector('article.answer > .markdown')?.innerText.length ?? 0;
    window.early ??= length > 20 ? length : undefined;
    return length > window.early;
  });
  await t.stop.click();
  const stopped = await t.answered();
  assert.match(await t.page.locator('.notice').last().innerText(), /Stopped/);
  await t.page.waitForTimeout(300);
  assert.equal(await shown.innerText(), stopped);
  await t.page.getByRole('button', {name: 'Answer again'}).click();
  await t.screenshot('streaming');
  await t.page.keyboard.press('Escape');
  await t.answered();
  // The server is free again, and the conversation goes on.
  await t.page.unroute('**/v1/chat/completions');
  assert.ok(await t.ask('And then?'));
});

test('answers again and keeps both versions', async () => {
  const t = await ready();
  await t.ask('Tell me a story.');
  await t.page.getByRole('button', {name: 'Answer again'}).click();
  const second = await t.answered();
  assert.match(await t.page.locator('.pager').innerText(), /2 of 2/);
  await t.page.getByRole('button', {name: 'Earlier version'}).click();
  assert.match(await t.page.locator('.pager').innerText(), /1 of 2/);
  await t.page.getByRole('button', {name: 'Later version'}).click();
  assert.equal(await t.answered(), second);
  assert.equal(await t.questions.count(), 1);
});

test('edits an earlier message and goes on from there', async () => {
  const t = await ready();
  await t.ask('Tell me a story about a cat.');
  await t.ask('Tell me another.');
  await t.questions.first().hover();
  await t.questions.first().getByRole('button', {name: 'Edit'}).click();
  const box = t.page.getByRole('textbox', {name: 'Edit the message'});
  assert.equal(await box.inputValue(), 'Tell me a story about a cat.');
  await box.fill('Tell me a story about a dog.');
  await t.screenshot('edit');
  const [request] = await Promise.all([t.page.waitForRequest('**/v1/chat/completions'), t.page.getByRole('button', {name: 'Send', exact: true}).first().click()]);
  assert.deepEqual(request.postDataJSON().messages, [{role: 'user', content: 'Tell me a story about a dog.'}]);
  await t.answered();
  assert.equal(await t.questions.count(), 1);
  await t.questions.first().getByRole('button', {name: 'Earlier version'}).click();
  assert.equal(await t.questions.count(), 2);
});

test('edits an answer and keeps the change in what it sends', async () => {
  const t = await ready();
  await t.ask('Tell me a story.');
  await t.answers.first().getByRole('button', {name: 'Edit'}).click();
  await t.page.getByRole('textbox', {name: 'Edit the message'}).fill('It was short.');
  await t.page.getByRole('button', {name: 'Save'}).click();
  const [request] = await Promise.all([t.page.waitForRequest('**/v1/chat/completions'), t.write('And then?')]);
  assert.equal(request.postDataJSON().messages[1].content, 'It was short.');
  await t.answered();
});

test('keeps the conversation when the page is loaded again', async () => {
  const t = await ready();
  const answer = await t.ask('Tell me a story about a boat.');
  await t.page.reload();
  assert.equal(await t.answered(), answer);
  assert.equal(await t.questions.locator('.said').innerText(), 'Tell me a story about a boat.');
  await t.page.getByRole('button', {name: 'New conversation', exact: true}).first().click();
  assert.equal(await t.questions.count(), 0);
  await t.page.goBack();
  assert.equal(await t.questions.count(), 1);
});

test('keeps what was written when the page is closed during an answer', async () => {
  const t = await ready();
  await t.alterRequests({ignore_eos: true, min_tokens: 1900});
  await t.write('Tell me a long story.');
  await t.page.waitForFunction(() => document.querySelector('article.answer > .markdown')?.innerText.length > 20);
  await t.page.reload();
  assert.ok((await t.answered()).length > 20);
  assert.match(await t.page.locator('.notice').last().innerText(), /closed before the answer was complete/);
});

test('renames, exports, deletes and imports conversations', async () => {
  const t = await ready();
  const answer = await t.ask('Tell me a story.');
  const list = t.page.getByRole('navigation', {name: 'Conversations'});
  await list.locator('.open').hover();
  await list.getByRole('button', {name: 'Rename “Tell me a story.”'}).click();
  await t.page.keyboard.type('Robots & <b>boats</b>');
  await t.page.keyboard.press('Enter');
  assert.equal(await list.locator('.open').innerText(), 'Robots & <b>boats</b>');
  const [saved] = await Promise.all([t.page.waitForEvent('download'), list.getByRole('button', {name: 'Export all'}).click()]);
  assert.match(saved.suggestedFilename(), /^inferno-conversations-\d{4}-\d\d-\d\d\.json$/);
  const file = path.join(folder, 'export.json');
  await saved.saveAs(file);
  const data = JSON.parse(fs.readFileSync(file));
  assert.equal(data.format, 'inferno-conversations');
  assert.equal(data.conversations[0].messages[1].content.trim(), answer.trim());

  await list.locator('.open').hover();
  await list.getByRole('button', {name: /^Delete/}).click();
  await t.screenshot('delete');
  await t.page.getByRole('alertdialog').getByRole('button', {name: 'Delete'}).click();
  assert.equal(await list.locator('.open').count(), 0);
  assert.equal(await t.questions.count(), 0);
  assert.equal(await t.page.evaluate(() => Object.keys(localStorage).filter(key => key.startsWith('inferno.chat.')).length), 0);

  await t.page.locator('#file').setInputFiles(file);
  assert.equal(await t.answered(), answer);
  await t.page.locator('#file').setInputFiles(file);  // a second time: a copy
  await list.locator('.open').nth(1).waitFor();
});

test('imports messages as a request has them, and says when a file holds none', async () => {
  const t = await ready();
  const write = (name, content) => { fs.writeFileSync(path.join(folder, name), content); return path.join(folder, name); };
  await t.page.locator('#file').setInputFiles(write('messages.json', JSON.stringify({messages: [
    {role: 'system', content: 'Be brief.'}, {role: 'user', content: [{type: 'text', text: 'Hello'}]}, {role: 'assistant', content: 'Hi.'}]})));
  assert.equal(await t.answered(), 'Hi.');
  const [request] = await Promise.all([t.page.waitForRequest('**/v1/chat/completions'), t.write('Go on')]);
  assert.deepEqual(request.postDataJSON().messages.map(message => message.role), ['system', 'user', 'assistant', 'user']);
  await t.answered();
  for (const content of ['not JSON', '[]', '{"messages": [{"role": "wizard"}]}', 'null', '{"conversations": [1, null]}']) {
    await t.page.locator('#file').setInputFiles(write('bad.json', content));
    await t.page.getByRole('alert').filter({hasText: 'holds no conversations'}).waitFor();
    await t.page.getByRole('alert').getByRole('button', {name: 'Close'}).click();
  }
});

test('sends the parameters and the system prompt that were set', async () => {
  const t = await ready();
  await t.page.getByRole('button', {name: 'Settings'}).click();
  await t.page.getByLabel('System prompt').fill('You tell stories.');
  const values = {'Temperature': 0.5, 'Top p': 0.9, 'Top k': 20, 'Min p': 0.05, 'Max tokens': 12, 'Seed': 7};
  for (const [label, value] of Object.entries(values)) await t.page.getByLabel(label, {exact: false}).fill(String(value));
  await t.page.getByLabel('Reasoning effort').selectOption('low');
  await t.page.getByLabel('Temperature').fill('9');  // not a temperature, so the last good one remains
  await t.screenshot('settings');
  await t.page.keyboard.press('Escape');
  const [request] = await Promise.all([t.page.waitForRequest('**/v1/chat/completions'), t.write('Tell me a story.')]);
  const {messages, model, stream, stream_options, ...sent} = request.postDataJSON();
  assert.deepEqual(sent, {temperature: 0.5, top_p: 0.9, top_k: 20, min_p: 0.05, max_completion_tokens: 12, seed: 7, reasoning_effort: 'low'});
  assert.deepEqual(messages[0], {role: 'system', content: 'You tell stories.'});
  assert.ok(stream && stream_options.include_usage);
  const first = await t.answered();
  assert.match(await t.page.locator('.notice').last().innerText(), /limit of tokens.*Max tokens/);
  await t.page.getByRole('button', {name: 'Answer again'}).click();
  assert.equal(await t.answered(), first, 'the same seed');
});

test('asks for a key, refuses a wrong one, and forgets it when told', async () => {
  const guarded = await serve('--api-key', 'sesame');
  try {
    const t = await tab({}, guarded.url);
    const dialog = t.page.getByRole('dialog', {name: 'API key'});
    await dialog.getByLabel('Key', {exact: true}).fill('wrong');
    await t.screenshot('key');
    await t.page.keyboard.press('Enter');
    await dialog.getByText('does not accept').waitFor();
    await dialog.getByLabel('Key', {exact: true}).fill('sesame');
    await dialog.getByRole('button', {name: 'Use this key'}).click();
    assert.ok(await t.ask('Tell me a story.'));
    assert.equal(await t.page.evaluate(() => localStorage.getItem('inferno.key')), null);
    assert.equal(await t.page.evaluate(() => sessionStorage.getItem('inferno.key')), 'sesame');
    await t.page.reload();
    await t.ready();
    await t.page.getByRole('button', {name: 'Settings'}).click();
    await t.page.getByRole('button', {name: 'Forget the key'}).click();
    await t.page.keyboard.press('Escape');
    await t.write('And then?');
    await dialog.getByLabel('Key', {exact: true}).fill('sesame');
    await dialog.getByLabel('Remember').check();
    await t.page.keyboard.press('Enter');
    assert.ok(await t.answered());
    assert.equal(await t.page.evaluate(() => localStorage.getItem('inferno.key')), 'sesame');
  } finally {
    await guarded.stop();
  }
});

test('says what to do when the context is full', async () => {
  const t = await ready();
  await t.write('word '.repeat(3000));
  await t.answered();
  assert.match(await t.page.locator('.notice').last().innerText(), /too long for the model’s context of 2,048 tokens\. Edit it/);
  await t.page.getByRole('button', {name: 'New conversation', exact: true}).first().click();
  // An answer that fills the context, then one message more.
  await t.alterRequests({ignore_eos: true});
  await t.write('Tell me a story.');
  await t.answered(60_000);
  await t.screenshot('context');
  assert.match(await t.page.locator('.notice').last().innerText(), /context is full/);
  assert.match(await t.page.locator('#context').innerText(), /Full: go on in a new conversation/);
  await t.page.unroute('**/v1/chat/completions');
  const more = 'And then? '.repeat(60).trim();
  await t.ask(more);
  assert.match(await t.page.locator('.notice').last().innerText(), /no longer fits.*new conversation/);
  await t.screenshot('context-refused');
  await t.page.getByRole('button', {name: 'Ask in a new conversation'}).click();
  assert.ok(await t.answered());
  assert.equal(await t.questions.locator('.said').innerText(), more);
});

test('waits and tries again while the queue is full', async () => {
  const t = await ready();
  let refused = 0;
  await t.page.route('**/v1/chat/completions', route => refused++ < 2
    ? route.fulfill({status: 429, headers: {'Retry-After': '1'}, json: {error: {message: 'queue full', type: 'rate_limit_error', param: null, code: null}}})
    : route.continue());
  await t.write('Tell me a story.');
  await t.page.getByText(/queue is full\. Trying again in \d+ s/).waitFor();
  await t.screenshot('queue');
  assert.ok(await t.answered());
  refused = 0;
  await t.write('And then?');
  await t.page.getByText(/queue is full\. Trying again/).waitFor();
  await t.page.keyboard.press('Escape');
  await t.answered();
  assert.match(await t.page.locator('.notice').last().innerText(), /Stopped/);
});

test('is answered in the end by a server whose queue is full', async () => {
  const small = await serve('--parallel', '1', '--max-queue', '1');
  try {
    const t = await tab({}, small.url);
    await t.ready();
    const other = () => fetch(small.url + '/v1/completions', {method: 'POST', headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({prompt: 'Once', ignore_eos: true, max_tokens: 2000, stream: true})});
    const runs = await other();  // its first token is there
    const waits = other();
    const isFull = async () => /num_requests_waiting\{[^}]*\} 1/.test(await (await fetch(small.url + '/metrics')).text());
    while (!await isFull()) await t.page.waitForTimeout(10);
    const [refusal] = await Promise.all([t.page.waitForResponse('**/v1/chat/completions'), t.write('Tell me a story.')]);
    assert.equal(refusal.status(), 429);
    assert.ok(await t.answered(60_000));
    assert.match(await runs.text(), /\[DONE\]/);
    assert.match(await (await waits).text(), /\[DONE\]/);
  } finally {
    await small.stop();
  }
});

test('waits while the model is loading', async () => {
  let loading = true;
  const t = await open('about:blank');
  tabs.push(t);
  t.outside.length = 0;
  t.context.removeAllListeners('request');
  await t.page.route('**/v1/models', route => loading
    ? route.fulfill({status: 503, json: {error: {message: 'the model is being loaded', type: 'server_error', param: null, code: null}}}) : route.continue());
  await t.page.goto(server.url);
  await t.page.getByRole('alert').filter({hasText: 'not ready. The model is being loaded. You can write'}).waitFor();
  await t.screenshot('loading');
  loading = false;
  await t.ready();
  assert.ok(await t.page.getByRole('alert').isHidden());
});

test('says that the server is away, and finds it again', async () => {
  const first = await serve();
  const t = await tab({}, first.url);
  await t.ready();
  await first.stop();
  await t.ask('Tell me a story.');
  assert.match(await t.page.locator('.notice').last().innerText(), /cannot be reached/);
  await t.page.getByRole('alert').filter({hasText: /does not answer.*inferno serve.*Trying again/}).waitFor();
  await t.screenshot('offline');
  const second = await serve('--port', first.port);
  try {
    await t.page.getByRole('alert').getByRole('button', {name: 'Try now'}).click();
    await t.page.getByRole('alert').waitFor({state: 'hidden'});
    await t.page.getByRole('button', {name: 'Try again'}).click();
    assert.ok(await t.answered());
  } finally {
    await second.stop();
  }
});

test('shows an error that ends a stream, and what came before it', async () => {
  const t = await ready();
  await t.script(delta({content: 'Once upon'}), {error: {message: 'the server is stopping', type: 'server_error', param: null, code: null}});
  assert.equal(await t.ask('Tell me a story.'), 'Once upon');
  assert.match(await t.page.locator('.notice').last().innerText(), /The server is stopping\./);
  await t.page.unroute('**/v1/chat/completions');
  await t.page.route('**/v1/chat/completions', route => route.fulfill({contentType: 'text/event-stream', body: `data: ${JSON.stringify(delta({content: 'Half'}))}\n\n`}));
  await t.page.getByRole('button', {name: 'Try again'}).click();
  assert.equal(await t.answered(), 'Half');
  assert.match(await t.page.locator('.notice').last().innerText(), /connection broke/);
});

test('shows what another model writes: thoughts folded, calls with their results, HTML as text', async () => {
  execFileSync('python3', ['-B', 'tests/server/known_model.py', path.join(folder, 'known')]);
  const known = await serve(path.join(folder, 'known'));
  try {
    const t = await tab({}, known.url);
    await t.ready();
    assert.equal(await t.ask('think'), 'Forty-two.');
    const thoughts = t.page.getByText('The user wants a number.');
    assert.equal(await thoughts.count(), 0);
    await t.page.locator('summary').filter({hasText: 'Thought'}).click();
    await thoughts.waitFor();

    await t.ask('page');
    const written = t.page.locator('article.answer > .markdown').last();
    assert.equal(await written.locator('li').last().innerText(), '<script>alert(1)</script>');
    assert.equal(await written.locator('pre').innerText(), "print('hi')");
    assert.equal(await written.locator('td').count(), 2);

    await t.page.getByRole('button', {name: 'Settings'}).click();
    await t.page.getByLabel('Tools').fill('[{"name": ');
    await t.page.getByText('not a JSON list').waitFor();
    await t.page.getByLabel('Tools').fill('[{"name": "get_weather", "description": "", "parameters": {"type": "object", "properties": {}}}]');
    await t.page.keyboard.press('Escape');
    await t.ask('plan');
    await t.page.getByText('Calls get_weather').waitFor();
    assert.match(await t.answers.last().locator('pre').innerText(), /"city": "Rome"/);
    await t.page.getByLabel('Result of get_weather').fill('{"degrees": 21}');
    await t.screenshot('tool-call');
    const [request] = await Promise.all([t.page.waitForRequest('**/v1/chat/completions'), t.page.getByRole('button', {name: 'Send the result'}).click()]);
    const [call, result] = request.postDataJSON().messages.slice(-2);
    assert.equal(call.reasoning, 'I need the weather.');
    assert.equal(call.tool_calls[0].function.name, 'get_weather');
    assert.deepEqual(result, {role: 'tool', tool_call_id: call.tool_calls[0].id, content: '{"degrees": 21}'});
    assert.equal(await t.answered(), 'It is 21 °C in Paris.');
  } finally {
    await known.stop();
  }
});

const MARKDOWN = fs.readFileSync(new URL('sample.md', import.meta.url), 'utf8');

for (const colorScheme of ['light', 'dark']) {
  test(`draws Markdown, ${colorScheme}`, async () => {
    const t = await ready({colorScheme, viewport: {width: 1280, height: 1400}});
    await t.script(delta({reasoning: 'Compare both.'}), delta({content: MARKDOWN}), finish('stop'));
    await t.ask('How do I merge two sorted lists?');
    const answer = t.page.locator('article.answer > .markdown');
    assert.equal(await answer.locator('h4').innerText(), 'Merging two sorted lists');
    assert.equal(await answer.locator('ol > li').count(), 2);
    assert.equal(await answer.locator('ol > li ul ul > li').innerText(), 'and Timsort finds the runs');
    assert.equal(await answer.locator('strong').first().innerText(), 'two common ways');
    assert.deepEqual(await answer.locator('td').allInnerTexts(), ['indexes', 'O(n)', 'O(n)', 'heapq.merge', 'O(n log k)', 'O(k)']);
    assert.equal(await answer.locator('blockquote').count(), 1);
    assert.deepEqual(await answer.locator('a').evaluateAll(links => links.map(link => link.href)),
                     ['https://docs.python.org/3/library/heapq.html', 'https://en.wikipedia.org/wiki/Merge_sort']);
    assert.match(await answer.innerText(), /snake_case_names stay as they are, and so does 2 \* 3 \* 4/);
    const code = answer.locator('.code').first();
    await code.getByRole('button', {name: 'Copy'}).click();
    await code.getByText('Copied').waitFor();
    const copied = await t.page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /^def merge\(a, b\):\n    out, i, j = \[\], 0, 0\n/);
    await t.screenshot('markdown-' + colorScheme);
  });
}

test('draws growing Markdown as it draws the whole', async () => {
  const t = await ready();
  const same = await t.page.evaluate(markdown => {
    const growing = document.createElement('div'), whole = document.createElement('div');
    for (let length = 0; length <= markdown.length; length += 3) drawMarkdown(growing, markdown.slice(0, length));
    drawMarkdown(growing, markdown);
    drawMarkdown(whole, markdown);
    return growing.outerHTML === whole.outerHTML;
  }, MARKDOWN);
  assert.ok(same);
});

test('takes hostile text for text', async () => {
  const t = await ready();
  const hostile = [
    '<script>window.hit = 1</script>', '<img src=x onerror="window.hit = 1">', '<svg onload="window.hit = 1">', '<iframe src="https://evil.example/">',
    '[link](javascript:window.hit=1)', '[link](JaVaScRiPt:window.hit=1)', '[link](java\tscript:window.hit=1)', '[link](data:text/html,<script>window.hit=1</script>)',
    '[link](vbscript:x)', '![image](https://evil.example/pixel.png)', '![image](x" onerror="window.hit=1)', '[a](https://evil.example/" onclick="window.hit=1)',
    '<javascript:window.hit=1>', '`<b onmouseover=window.hit=1>`', '```html" onclick="window.hit=1\n<script>window.hit = 1</script>\n```',
    '| <img src=x onerror=window.hit=1> |\n|---|\n| </td><script>window.hit=1</script> |', '<style>* { display: none }</style>', '<base href="https://evil.example/">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">', '<form action="https://evil.example/"><button>x</button></form>', '\u202Egnp.exe', '<a href="https://evil.example" ping="https://evil.example">x</a>',
  ].join('\n\n');
  await t.script(delta({reasoning: hostile}), delta({content: hostile}),
                 delta({tool_calls: [{index: 0, id: '<b>', type: 'function', function: {name: '<img src=x onerror=window.hit=1>', arguments: hostile}}]}),
                 {...finish('tool_calls'), inferno: {warnings: [hostile]}});
  await t.ask(hostile);
  await t.page.locator('summary').filter({hasText: 'Thought'}).click();
  for (const selector of ['script', 'img', 'iframe', 'style', 'base', 'form:not(.result)', 'b', 'svg[onload]', '[onerror]', '[onclick]', '[onmouseover]', '[ping]']) {
    assert.equal(await t.page.locator('#messages ' + selector).count(), 0, selector);
  }
  const links = await t.page.locator('#messages a').evaluateAll(list => list.map(link => [link.protocol, link.rel, link.target]));
  assert.ok(links.length > 0);
  for (const link of links) assert.deepEqual(link, ['https:', 'noopener noreferrer', '_blank']);
  await t.page.reload();
  await t.answered();
  await t.page.getByRole('button', {name: 'Export all'}).hover();
  assert.equal(await t.page.evaluate(() => window.hit), undefined);
  assert.ok(await t.page.locator('#text').isVisible());
});

test('draws hostile lengths in time', async () => {
  const t = await ready();
  const slowest = await t.page.evaluate(() => {
    const many = 50_000;
    const texts = ['*', '_', '**a ', '~~', '`', '``` ', '[', '![', '[a](', '<', '> ', '- ', '#', '# ', '|', '| - ', '\\', 'http://', '(', ' ', '1. ', '  - a\n', '>\n', '*a', '_a ', '`a', '\n\n', '---\n', '|a|\n|-|\n']
      .map(piece => piece.repeat(many / piece.length));
    texts.push('-' + ' '.repeat(many) + 'x', '```' + ' '.repeat(many) + '`', '[a](' + '('.repeat(many), '# ' + ' #'.repeat(many / 2) + 'x', '>'.repeat(many) + 'a',
               Array.from({length: 1000}, (_, depth) => ' '.repeat(depth) + '- a').join('\n'));
    return Math.max(...texts.map(text => {
      const begin = performance.now();
      drawMarkdown(document.createElement('div'), text);
      return performance.now() - begin;
    }));
  });
  assert.ok(slowest < 1500, `${slowest} ms`);
});

test('fits a phone', async () => {
  const t = await ready({viewport: {width: 375, height: 700}, hasTouch: true, isMobile: true, deviceScaleFactor: 2});
  await t.screenshot('phone-empty');
  await t.text.fill('Tell me a story.');
  await t.page.getByRole('button', {name: 'Send'}).tap();
  await t.answered();
  await t.script(delta({reasoning: 'Compare both.'}), delta({content: MARKDOWN}), finish('stop'));
  await t.text.fill('How do I merge two sorted lists?');
  await t.page.getByRole('button', {name: 'Send', exact: true}).tap();
  await t.answered();
  const overflow = await t.page.evaluate(() => [document.documentElement, document.querySelector('#scroll')].map(box => box.scrollWidth - box.clientWidth));
  assert.deepEqual(overflow, [0, 0]);
  await t.screenshot('phone');
  await t.page.getByRole('button', {name: 'Conversations'}).tap();
  await t.page.getByRole('button', {name: 'New conversation', exact: true}).first().waitFor();
  await t.page.waitForTimeout(300);
  await t.screenshot('phone-list');
  await t.page.getByRole('button', {name: 'New conversation', exact: true}).first().tap();
  assert.equal(await t.questions.count(), 0);
  await t.page.getByRole('button', {name: 'Settings'}).tap();
  await t.screenshot('phone-settings');
  // Whatever is touched is large enough.
  await t.page.keyboard.press('Escape');
  const small = await t.page.locator('#main button:visible').evaluateAll(list => list.filter(one => one.getBoundingClientRect().height < 36).map(one => one.outerHTML));
  assert.deepEqual(small, []);
});

test('can be used by keyboard alone', async () => {
  const t = await ready();
  const press = async (...keys) => { for (const key of keys) await t.page.keyboard.press(key); };
  const focused = () => t.page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim());
  const tabTo = async (name, key = 'Tab') => {
    for (let step = 0; step < 40; step++) {
      if (await focused() === name) return;
      await press(key);
    }
    assert.fail(`Tab does not reach “${name}”`);
  };
  assert.equal(await focused(), 'Message');  // the page begins there
  await t.page.keyboard.type('First line');
  await press('Shift+Enter');
  await t.page.keyboard.type('second line');
  await press('Enter');
  await t.answered();
  assert.equal(await t.questions.locator('.said').innerText(), 'First line\nsecond line');
  assert.equal(await focused(), 'Message');

  await press('ArrowUp');
  assert.equal(await focused(), 'Edit the message');
  await press('Escape');
  assert.equal(await focused(), 'Edit');
  await press('Enter');
  await press('Control+A');
  await t.page.keyboard.type('Tell me a story.');
  await press('Enter');
  await t.answered();
  assert.equal(await t.questions.locator('.said').innerText(), 'Tell me a story.');

  await tabTo('Answer again', 'Shift+Tab');
  await t.alterRequests({ignore_eos: true, min_tokens: 1900});
  await press('Enter');
  await t.stop.waitFor();
  await t.page.waitForFunction(() => document.querySelector('article.answer > .markdown')?.innerText.length > 20);
  await press('Escape');
  await t.answered();
  assert.match(await t.page.locator('.notice').last().innerText(), /Stopped/);

  await press('Alt+Shift+S');
  await t.page.getByRole('dialog', {name: 'Settings'}).waitFor();
  for (let step = 0; step < 30; step++) {
    await press('Tab');
    assert.ok(await t.page.evaluate(() => document.activeElement === document.body || document.querySelector('#settings').contains(document.activeElement)), 'focus left the dialog');
  }
  await press('Escape');
  await t.page.getByRole('dialog', {name: 'Settings'}).waitFor({state: 'hidden'});

  await press('Alt+Shift+N');
  assert.equal(await t.questions.count(), 0);
  assert.equal(await focused(), 'Message');
  await tabTo('Delete “First line second line”', 'Shift+Tab');
  await press('Enter', 'Tab', 'Enter');
  assert.equal(await t.page.locator('#conversations .open').count(), 0);
});

test('tells a screen reader what happens', async () => {
  const t = await ready();
  await t.page.evaluate(() => {
    window.said = [];
    new MutationObserver(() => window.said.push(document.querySelector('#status').textContent)).observe(document.querySelector('#status'), {childList: true});
  });
  const answer = await t.ask('Tell me a story.');
  await t.page.waitForTimeout(200);
  const said = await t.page.evaluate(() => window.said);
  assert.ok(said.includes('Generating an answer'));
  assert.ok(said.at(-1).startsWith('Answer: ' + answer.slice(0, 20)), said.at(-1));
  // Everything that can be used has a name.
  const nameless = await t.page.locator('button, input, textarea, select, meter').evaluateAll(list => list
    .filter(one => one.checkVisibility() && !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map(one => one.outerHTML));
  assert.deepEqual(nameless, []);
});

test('has enough contrast', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const t = await ready({colorScheme});
    const poor = await t.page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const probe = document.body.appendChild(document.createElement('i'));
      const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      const luminance = name => {
        probe.style.color = `var(--${name})`;
        canvas.fillStyle = getComputedStyle(probe).color;
        canvas.fillRect(0, 0, 1, 1);
        const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map(value => value / 255).map(value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4);
        return .2126 * red + .7152 * green + .0722 * blue;
      };
      const contrast = (one, other) => {
        const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (high + .05) / (low + .05);
      };
      const pairs = [['text', 'page'], ['text', 'side'], ['text', 'raised'], ['text', 'hover'], ['text', 'notice'], ['soft', 'page'], ['soft', 'side'], ['soft', 'hover'],
                     ['accent', 'page'], ['on-accent', 'accent'], ['danger', 'page']];
      return [...pairs.filter(pair => contrast(...pair) < 4.5), ...[['edge', 'page']].filter(pair => contrast(...pair) < 3)].map(pair => `${pair} ${contrast(...pair)}`);
    });
    assert.deepEqual(poor, [], colorScheme);
  }
});

test('keeps two tabs in step', async () => {
  const t = await ready();
  await t.ask('Tell me a story.');
  const other = await t.context.newPage();
  await other.goto(t.page.url());
  await other.locator('article.answer').waitFor();
  await t.ask('And then?');
  await other.locator('article.answer').nth(1).waitFor();
  await t.page.getByRole('button', {name: 'Settings'}).click();
  await t.page.getByLabel('Theme').selectOption('dark');
  await other.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
});
