// @anthropic-ai/sdk as a client: SERVER=http://… KEY=… ANSWERS=file.ts node anthropic_test.mjs
// The server must serve the model with known answers (known_model.py). Every raw answer is written to ANSWERS as a value of
// the package's own types, for tsc to check.
import Anthropic from '@anthropic-ai/sdk';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, afterEach, test } from 'node:test';
import { parseEvents } from './openai_schemas.mjs';
import { Recorder } from './recorder.mjs';

const server = process.env.SERVER, key = process.env.KEY;
const recorder = new Recorder();
const client = new Anthropic({ baseURL: server, apiKey: key, fetch: recorder.fetch, maxRetries: 0 });
const model = 'known', max_tokens = 100;
const HELLO = 'Hello! I am the known model.';
const user = (content) => [{ role: 'user', content }];
const ask = (content, more = {}) => client.messages.create({ model, max_tokens, messages: user(content), ...more });

const schema = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const tools = [
  { name: 'get_weather', description: 'The weather of a city', input_schema: schema({ city: { type: 'string' } }), cache_control: { type: 'ephemeral' } },
  { name: 'get_time', description: 'The time', input_schema: schema({ zone: { type: 'string' }, h24: { type: 'boolean' } }) },
];
const results = (message, more = {}) => message.content.filter((one) => one.type === 'tool_use').map((one) => (
  { type: 'tool_result', tool_use_id: one.id, content: '21', ...more }));

const typed = ["import Anthropic from '@anthropic-ai/sdk';"];
const value = (type, json) => typed.push(`export const v${typed.length}: ${type} = ${json};`);
afterEach(() => {
  for (const one of recorder.take()) {
    assert.match(one.headers.get('request-id') ?? one.headers.get('x-request-id') ?? '', /^\S+$/);
    if (one.status >= 400) value('Anthropic.ErrorResponse', withoutDetails(one.body));
    else if (one.path.endsWith('/count_tokens')) value('Anthropic.MessageTokensCount', one.body);
    else if (!one.type.includes('event-stream')) value('Anthropic.Message', one.body);
    else checkStream(one.body);
  }
});
// The package reads the details of an error, but its types do not have them.
const withoutDetails = (body) => JSON.stringify(JSON.parse(body), (key, one) => (key === 'details' ? undefined : one));
after(() => writeFileSync(process.env.ANSWERS, typed.join('\n') + '\n'));

function checkStream(body) {
  let open = null, begun = false;
  for (const { event, data } of parseEvents(body)) {
    const one = JSON.parse(data);
    assert.equal(event, one.type);
    if (one.type === 'ping' || one.type === 'error') continue;
    value('Anthropic.RawMessageStreamEvent', data);
    if (one.type === 'message_start') { assert(!begun); begun = true; continue; }
    assert(begun);
    if (one.type === 'content_block_start') { assert.equal(open, null); open = one.index; }
    if (one.type === 'content_block_delta') assert.equal(one.index, open);
    if (one.type === 'content_block_stop') { assert.equal(one.index, open); open = null; }
  }
  assert.equal(open, null);
}

test('an answer', async () => {
  const answer = await ask('hi');
  assert.deepEqual(answer.content.map((one) => one.type), ['text']);
  assert.equal(answer.content[0].text, HELLO);
  assert.equal(answer.stop_reason, 'end_turn');
  assert.equal(answer.stop_sequence, null);
  assert.match(answer.id, /^msg_[0-9a-f]{32}$/);
  assert.equal(answer.usage.output_tokens, 7);
  assert(!('timings' in answer) && !('inferno' in answer));
});

test('a stream', async () => {
  const stream = client.messages.stream({ model, max_tokens, messages: user('hi') });
  const pieces = [];
  stream.on('text', (piece) => pieces.push(piece));
  const final = await stream.finalMessage();
  assert.equal(final.content[0].text, HELLO);
  assert.equal(pieces.join(''), HELLO);
  assert(pieces.length > 2);
  assert.equal(final.stop_reason, 'end_turn');
  assert.equal(final.usage.output_tokens, 7);
});

test('thoughts are thinking blocks with a signature', async () => {
  for (const answer of [await ask('think', { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 }),
                        await client.messages.stream({ model, max_tokens, messages: user('think') }).finalMessage()]) {
    assert.deepEqual(answer.content.map((one) => one.type), ['thinking', 'text']);
    assert.equal(answer.content[0].thinking, 'The user wants a number.');
    assert.equal(typeof answer.content[0].signature, 'string');
    assert(answer.content[0].signature.length > 0);
    assert.equal(answer.content[1].text, 'Forty-two.');
    const next = await client.messages.create({ model, max_tokens, messages: [...user('think'), { role: 'assistant', content: answer.content }, ...user('hi')] });
    assert.equal(next.content[0].text, HELLO);
  }
  const silent = await ask('plan', { thinking: { type: 'disabled' }, tools });
  assert(!silent.content.some((one) => one.type === 'thinking'));
});

test('tools in two rounds', async () => {
  for (const call of [(body) => client.messages.create(body), (body) => client.messages.stream(body).finalMessage()]) {
    const messages = user('tool');
    const first = await call({ model, max_tokens, messages, tools });
    assert.equal(first.stop_reason, 'tool_use');
    const uses = first.content.filter((one) => one.type === 'tool_use');
    assert.deepEqual(uses.map((one) => [one.name, one.input]), [['get_weather', { city: 'Paris' }], ['get_time', { zone: 'Europe/Paris', h24: true }]]);
    messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: results(first) });
    const second = await call({ model, max_tokens, messages, tools });
    assert.equal(second.content[0].text, 'It is 21 °C in Paris.');
  }
});

test('results may be parts, errors or nothing', async () => {
  for (const more of [{ content: [{ type: 'text', text: '21' }] }, { is_error: true, content: 'no such city' }, { content: undefined },
                      { content: '21', cache_control: { type: 'ephemeral' } }]) {
    const messages = user('tool');
    const first = await client.messages.create({ model, max_tokens, messages, tools });
    messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: results(first, more) });
    const second = await client.messages.create({ model, max_tokens, messages, tools });
    assert.equal(second.content[0].text, 'It is 21 °C in Paris.');
  }
});

test('input is streamed as JSON', async () => {
  let json = '';
  const names = [];
  for await (const event of await client.messages.create({ model, max_tokens, messages: user('plan'), tools, stream: true })) {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') names.push(event.content_block.name);
    if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') json += event.delta.partial_json;
  }
  assert.deepEqual(names, ['get_weather']);
  assert.deepEqual(JSON.parse(json), { city: 'Rome' });
});

test('limits and stop sequences', async () => {
  const short = await ask('long', { max_tokens: 9 });
  assert.equal(short.stop_reason, 'max_tokens');
  assert.equal(short.usage.output_tokens, 9);
  const stop = await ask('stop', { stop_sequences: ['STOP'] });
  assert.equal(stop.stop_reason, 'stop_sequence');
  assert.equal(stop.stop_sequence, 'STOP');
  assert.equal(stop.content[0].text, 'one, two, ');
  const empty = await ask('empty');
  assert.equal(empty.stop_reason, 'end_turn');
});

test('system prompts, cache marks and betas', async () => {
  const body = { model, max_tokens, system: [{ type: 'text', text: 'Be kind. '.repeat(40), cache_control: { type: 'ephemeral' } }],
                 messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] }], metadata: { user_id: 'u' } };
  await client.messages.create(body);
  const again = await client.messages.create(body);
  assert(again.usage.cache_read_input_tokens > 0, JSON.stringify(again.usage));
  const beta = await client.beta.messages.create({ ...body, betas: ['prompt-caching-2024-07-31', 'something-else-2030-01-01'] });
  assert.equal(beta.content[0].text, HELLO);
});

test('count_tokens equals what the answer counts', async () => {
  const fresh = 'hi ' + Math.random();
  for (const more of [{}, { tools }, { system: 'Be kind.' }]) {
    const counted = await client.messages.countTokens({ model, messages: user(fresh), ...more });
    const answer = await ask(fresh, more);
    assert.equal(counted.input_tokens, answer.usage.input_tokens + (answer.usage.cache_read_input_tokens ?? 0) + (answer.usage.cache_creation_input_tokens ?? 0));
  }
});

test('count_tokens also counts what does not fit', async () => {
  const counted = await client.messages.countTokens({ model, messages: user('x'.repeat(200_000)) });
  assert(counted.input_tokens > 32768, JSON.stringify(counted));
});

test('a stream adds up to the whole answer, whatever the model wrote', async () => {
  for (const word of ['hi', 'think', 'mull', 'tool', 'talk', 'plan', 'order', 'open', 'unknown', 'cut', 'bytes', 'control', 'spaces', 'empty', 'page', 'thoughts']) {
    const body = { model, max_tokens, messages: user(word), tools };
    const whole = await client.messages.create(body), streamed = await client.messages.stream(body).finalMessage();
    const withoutIds = (content) => JSON.parse(JSON.stringify(content), (key, one) => (key === 'id' ? undefined : one));
    assert.deepEqual(withoutIds(streamed.content), withoutIds(whole.content), word);
    assert.equal(streamed.stop_reason, whole.stop_reason, word);
    assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens, word);
  }
});

test('arguments that are not JSON are text', async () => {
  const messages = user('broken');
  const answer = await client.messages.create({ model, max_tokens, messages, tools });
  assert.deepEqual(answer.content.map((one) => one.type), ['tool_use', 'text']);
  assert.deepEqual(answer.content[0].input, {});
  assert.equal(answer.content[1].text, '{"city": [ Sorry.');
  await client.messages.stream({ model, max_tokens, messages, tools }).finalMessage();
  messages.push({ role: 'assistant', content: answer.content }, { role: 'user', content: results(answer, { is_error: true }) });
  assert.equal((await client.messages.create({ model, max_tokens, messages, tools })).content[0].text, 'It is 21 °C in Paris.');
});

test('omitted thoughts come back in the signature', async () => {
  const count = async (content) => (await client.messages.countTokens({ model, messages: [...user('think'), { role: 'assistant', content }, ...user('hi')] })).input_tokens;
  const omitted = await ask('think', { thinking: { type: 'adaptive', display: 'omitted' } });
  assert.equal(omitted.content[0].thinking, '');
  assert.equal(await count(omitted.content), await count((await ask('think')).content));
});

test('what has no effect is named', async () => {
  const { response } = await ask('hi', { tools: [{ type: 'web_search_20250305', name: 'web_search' }], context_management: { edits: [] } }).withResponse();
  assert.equal(response.headers.get('x-inferno-ignored'), 'tools.web_search_20250305, context_management');
});

// Without the constraint the known model's answers are other words.
test('an answer fits its schema', async () => {
  const place = { type: 'object', properties: { ok: { type: 'boolean' }, city: { enum: ['Oslo', 'Bonn'] } }, required: ['ok', 'city'], additionalProperties: false };
  const check = (text) => {
    const found = JSON.parse(text);
    assert.deepEqual(Object.keys(found), ['ok', 'city']);
    assert(['Oslo', 'Bonn'].includes(found.city), text);
  };
  const format = jsonSchemaOutputFormat(place);
  const parsed = await client.messages.parse({ model, max_tokens: 4000, seed: 1, messages: user('think'), output_config: { format } });
  assert.deepEqual(parsed.content.map((one) => one.type), ['thinking', 'text']);
  check(parsed.content[1].text);
  assert.deepEqual(parsed.parsed_output, JSON.parse(parsed.content[1].text));
  const streamed = await client.messages.stream({ model, max_tokens: 4000, seed: 1, messages: user('talk'), output_config: { format } }).finalMessage();
  check(streamed.content.find((one) => one.type === 'text').text);
  const old = await ask('think', { max_tokens: 4000, seed: 1, output_format: { type: 'json_schema', schema: place } });
  check(old.content[1].text);
  assert.equal((await ask('think')).content[1].text, 'Forty-two.');
  const error = await ask('hi', { output_config: { format: { type: 'json_schema', schema: { uniqueItems: true } } } }).catch((one) => one);
  assert.equal(error.status, 400);
  assert.match(error.apiMessage, /uniqueItems/);
});

test('calls are made as tool_choice requires', async () => {
  const pick = { name: 'pick', description: 'Picks', input_schema: { ...schema({ digit: { type: 'integer', minimum: 3, maximum: 5 } }), additionalProperties: false } };
  for (const call of [(body) => client.messages.create(body), (body) => client.messages.stream(body).finalMessage()]) {
    for (const tool_choice of [{ type: 'any', disable_parallel_tool_use: true }, { type: 'tool', name: 'pick', disable_parallel_tool_use: true }]) {
      const offered = tool_choice.type === 'any' ? [pick] : [...tools, pick];
      const answer = await call({ model, max_tokens: 400, messages: user('think'), tools: offered, tool_choice });
      assert.equal(answer.stop_reason, 'tool_use');
      assert.deepEqual(answer.content.map((one) => one.type), ['thinking', 'tool_use']);
      assert.equal(answer.content[1].name, 'pick');
      assert([3, 4, 5].includes(answer.content[1].input.digit), JSON.stringify(answer.content));
    }
  }
  assert.equal((await ask('think', { tools: [pick], tool_choice: { type: 'auto' } })).content[1].text, 'Forty-two.');
  const error = await ask('hi', { tools, tool_choice: { type: 'tool', name: 'no_such' } }).catch((one) => one);
  assert.equal(error.status, 400);
});

test('the tool runner of the package', async () => {
  const calls = [];
  const runnable = tools.map((one) => ({ ...one, type: 'custom', parse: (input) => input, run: (input) => { calls.push([one.name, input]); return '21'; } }));
  const answer = await client.beta.messages.toolRunner({ model, max_tokens, messages: user('tool'), tools: runnable });
  assert.deepEqual(calls, [['get_weather', { city: 'Paris' }], ['get_time', { zone: 'Europe/Paris', h24: true }]]);
  assert.equal(answer.content[0].text, 'It is 21 °C in Paris.');
});

// As Claude Code 2.1 sends it: a line for the billing, and a last message of the role system.
test('the request of a coding agent', async () => {
  const body = (nonce) => ({ model, max_tokens: 32000, messages: [...user('hi'), { role: 'system', content: 'Available agents: none' }], tools,
    system: [{ type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.197.167; cch=${nonce};` }, { type: 'text', text: 'You are an agent. '.repeat(20), cache_control: { type: 'ephemeral' } }],
    thinking: { type: 'adaptive' }, context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] }, output_config: { effort: 'high' } });
  assert.equal((await client.beta.messages.stream(body('a1')).finalMessage()).content[0].text, HELLO);
  const again = await client.beta.messages.stream(body('b2')).finalMessage();
  assert(again.usage.cache_read_input_tokens > again.usage.input_tokens, JSON.stringify(again.usage));
});

test('errors have the shape and the classes of the original', async () => {
  const refused = async (promise, type, status, kind) => {
    const error = await promise.catch((one) => one);
    assert(error instanceof type, String(error));
    assert.equal(error.status, status);
    assert.equal(error.error.type, 'error');
    assert.equal(error.error.error.type, kind);
  };
  await refused(ask('hi', { max_tokens: -1 }), Anthropic.BadRequestError, 400, 'invalid_request_error');
  await refused(ask('hi', { temperature: 7 }), Anthropic.BadRequestError, 400, 'invalid_request_error');
  await refused(ask('hi', { messages: [] }), Anthropic.BadRequestError, 400, 'invalid_request_error');
  await refused(ask('hi', { model: 'claude' }), Anthropic.NotFoundError, 404, 'not_found_error');
  await refused(ask('x'.repeat(200_000)), Anthropic.BadRequestError, 400, 'invalid_request_error');
  assert.match((await ask('x'.repeat(200_000)).catch((one) => one)).apiMessage, /^prompt is too long: /);
  const stranger = new Anthropic({ baseURL: server, apiKey: 'wrong', fetch: recorder.fetch, maxRetries: 0 });
  await refused(stranger.messages.create({ model, max_tokens, messages: user('hi') }), Anthropic.AuthenticationError, 401, 'authentication_error');
});

test('aborts', async () => {
  const stream = client.messages.stream({ model, max_tokens: 30000, messages: user('long') });
  await new Promise((done) => stream.once('text', done));
  stream.abort();
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
});

test('a coding agent works through messages', async () => {
  const files = { 'main.c': 'int main() { return 1; }\n' };
  const agentTools = [['read_file', ['path']], ['write_file', ['path', 'text']]].map(([name, fields]) => (
    { name, description: name, input_schema: schema(Object.fromEntries(fields.map((one) => [one, { type: 'string' }]))) }));
  const messages = [{ role: 'user', content: [{ type: 'text', text: '<reminder>Be brief.</reminder>' }, { type: 'text', text: 'unused' }] },
                    { role: 'assistant', content: 'Ready.' }, ...user('agent please fix main.c')];
  let rounds = 0, answer = null;
  while (++rounds < 6) {
    answer = await client.beta.messages.stream({ model, max_tokens: 4096, messages, tools: agentTools, betas: ['interleaved-thinking-2025-05-14'],
      system: [{ type: 'text', text: 'You are a coding agent.', cache_control: { type: 'ephemeral' } }], metadata: { user_id: 'session' },
      thinking: { type: 'enabled', budget_tokens: 2048 } }).finalMessage();
    messages.push({ role: 'assistant', content: answer.content });
    if (answer.stop_reason !== 'tool_use') break;
    const done = answer.content.filter((one) => one.type === 'tool_use').map((use) => {
      if (use.name === 'write_file') files[use.input.path] = use.input.text;
      return { type: 'tool_result', tool_use_id: use.id, content: [{ type: 'text', text: use.name === 'read_file' ? files[use.input.path] : 'written' }] };
    });
    messages.push({ role: 'user', content: done });
  }
  assert.equal(rounds, 3);
  assert.equal(answer.content.at(-1).text, 'Done: main.c returns 0.');
  assert.equal(files['main.c'], 'int main() {\n  return 0;\n}\n');
});
