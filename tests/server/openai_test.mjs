// The openai package as a client: SERVER=http://… KEY=… SCHEMA=openai-openapi.json node openai_test.mjs
// The server must serve the model with known answers (known_model.py). Every raw answer is validated.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import OpenAI from 'openai';
import { Schemas } from './openai_schemas.mjs';
import { Recorder } from './recorder.mjs';

const server = process.env.SERVER, key = process.env.KEY;
const schemas = new Schemas(process.env.SCHEMA);
const recorder = new Recorder();
const client = new OpenAI({ baseURL: `${server}/v1`, apiKey: key, fetch: recorder.fetch, maxRetries: 0 });
const model = 'known';
const HELLO = 'Hello! I am the known model.';
const user = (content) => [{ role: 'user', content }];

const parameters = (properties) => ({ type: 'object', properties, required: Object.keys(properties), additionalProperties: false });
const functions = [
  { name: 'get_weather', description: 'The weather of a city', parameters: parameters({ city: { type: 'string' } }), strict: true },
  { name: 'get_time', description: 'The time', parameters: parameters({ zone: { type: 'string' }, h24: { type: 'boolean' } }), strict: true },
];
const tools = functions.map((one) => ({ type: 'function', function: one }));
// Arguments that do not follow their schema are possible with these alone.
const lenientTools = functions.map((one) => ({ type: 'function', function: { ...one, strict: false } }));
const flatTools = functions.map((one) => ({ type: 'function', ...one }));

afterEach(() => {
  for (const one of recorder.take()) {
    schemas.checkExchange(one);
    assert.match(one.headers.get('x-request-id') ?? '', /^\S+$/);
  }
});

const refused = (promise, type, status) => assert.rejects(promise, (error) => {
  assert(error instanceof type, `${error.constructor.name}: ${error.message}`);
  assert.equal(error.status, status);
  assert(error.requestID);
  return true;
});

// ---- models and errors

test('models are listed and shown', async () => {
  const list = await client.models.list();
  assert.equal(list.data[0].id, model);
  assert.equal((await client.models.retrieve(model)).id, model);
  await refused(client.models.retrieve('none'), OpenAI.NotFoundError, 404);
});

test('errors are of the classes that the client knows', async () => {
  const ask = (more) => client.chat.completions.create({ model, messages: user('hi'), ...more });
  await refused(ask({ temperature: 3 }), OpenAI.BadRequestError, 400);
  await refused(ask({ messages: [] }), OpenAI.BadRequestError, 400);
  await refused(ask({ model: 'gpt-4o' }), OpenAI.NotFoundError, 404);
  await refused(ask({ response_format: { type: 'yaml' } }), OpenAI.BadRequestError, 400);
  await refused(ask({ tool_choice: 'required' }), OpenAI.BadRequestError, 400);
  await refused(ask({ stream_options: { include_usage: true } }), OpenAI.BadRequestError, 400);
  await refused(ask({ messages: user('x'.repeat(200_000)) }), OpenAI.BadRequestError, 400);
  const stranger = new OpenAI({ baseURL: `${server}/v1`, apiKey: 'wrong', fetch: recorder.fetch, maxRetries: 0 });
  await refused(stranger.models.list(), OpenAI.AuthenticationError, 401);
  const error = await ask({ temperature: 3 }).catch((one) => one);
  assert.equal(error.param, 'temperature');
  const far = await ask({ messages: user('x'.repeat(200_000)) }).catch((one) => one);
  assert.equal(far.code, 'context_length_exceeded');
  assert(far.error.n_prompt_tokens > far.error.n_ctx || far.error.n_prompt_tokens >= 32768, JSON.stringify(far.error));
});

// ---- chat completions

test('a chat answer', async () => {
  const { data, response } = await client.chat.completions.create({ model, messages: user('hi') }).withResponse();
  assert.equal(data.choices[0].message.content, HELLO);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.equal(data.usage.completion_tokens, 7);
  assert.match(data.id, /^chatcmpl-[0-9a-f]{32}$/);
  assert.match(response.headers.get('content-type'), /^application\/json/);
});

test('a chat stream', async () => {
  const stream = await client.chat.completions.create({ model, messages: user('hi'), stream: true, stream_options: { include_usage: true } });
  let text = '', usage = null, ids = new Set(), finish = null, first = null;
  for await (const chunk of stream) {
    ids.add(chunk.id);
    first ??= chunk.choices[0].delta;
    text += chunk.choices[0]?.delta?.content ?? '';
    finish = chunk.choices[0]?.finish_reason ?? finish;
    if (chunk.usage) { usage = chunk.usage; assert.deepEqual(chunk.choices, []); }
  }
  assert.equal(text, HELLO);
  assert.equal(ids.size, 1);
  assert.equal(finish, 'stop');
  assert.equal(first.role, 'assistant');
  assert.equal(usage.completion_tokens, 7);
});

test('the client\'s stream helper', async () => {
  const stream = client.chat.completions.stream({ model, messages: user('think') });
  const deltas = [];
  stream.on('content.delta', ({ delta }) => deltas.push(delta));
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, 'Forty-two.');
  assert.equal(deltas.join(''), 'Forty-two.');
  assert(deltas.length > 1);
});

test('reasoning has its own fields and its tokens are counted', async () => {
  const answer = await client.chat.completions.create({ model, messages: user('think') });
  const { message } = answer.choices[0];
  assert.equal(message.reasoning, 'The user wants a number.');
  assert.equal(message.reasoning_content, message.reasoning);
  assert.equal(message.content, 'Forty-two.');
  assert(answer.usage.completion_tokens_details.reasoning_tokens >= 3);
  const without = await client.chat.completions.create({ model, messages: user('think'), include_reasoning: false });
  assert.equal(without.choices[0].message.content, 'Forty-two.');
  assert(!('reasoning' in without.choices[0].message) && !('reasoning_content' in without.choices[0].message));
  // Both names are taken in history.
  for (const name of ['reasoning', 'reasoning_content']) {
    const next = await client.chat.completions.create({ model, messages: [...user('think'), { ...message, [name]: message.reasoning }, ...user('hi')] });
    assert.equal(next.choices[0].message.content, HELLO);
  }
});

test('tools in two rounds, two calls', async () => {
  const messages = user('tool');
  const first = await client.chat.completions.create({ model, messages, tools });
  assert.equal(first.choices[0].finish_reason, 'tool_calls');
  const { message } = first.choices[0];
  assert.deepEqual(message.tool_calls.map((one) => [one.function.name, JSON.parse(one.function.arguments)]),
                   [['get_weather', { city: 'Paris' }], ['get_time', { zone: 'Europe/Paris', h24: true }]]);
  assert.equal(new Set(message.tool_calls.map((one) => one.id)).size, 2);
  messages.push(message, ...message.tool_calls.map((one) => ({ role: 'tool', tool_call_id: one.id, content: '{"degrees": 21}' })));
  const second = await client.chat.completions.create({ model, messages, tools });
  assert.equal(second.choices[0].message.content, 'It is 21 °C in Paris.');
  assert.equal(second.choices[0].finish_reason, 'stop');
});

test('tools in two rounds, streamed', async () => {
  const messages = user('tool');
  const first = await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
  const { message } = first.choices[0];
  assert.equal(message.tool_calls.length, 2);
  assert.deepEqual(JSON.parse(message.tool_calls[1].function.arguments), { zone: 'Europe/Paris', h24: true });
  messages.push(message, ...message.tool_calls.map((one) => ({ role: 'tool', tool_call_id: one.id, content: '21' })));
  const second = await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
  assert.equal(second.choices[0].message.content, 'It is 21 °C in Paris.');
});

test('ids of calls are unique among answers and requests', async () => {
  const ids = [];
  for (let round = 0; round < 2; ++round) {
    const answer = await client.chat.completions.create({ model, messages: user('tool'), tools, n: 3, seed: 1 });
    for (const choice of answer.choices) ids.push(...choice.message.tool_calls.map((one) => one.id));
  }
  assert.equal(ids.length, 12);
  assert.equal(new Set(ids).size, 12, JSON.stringify(ids));
});

test('a call is streamed piece by piece', async () => {
  const pieces = [];
  for await (const chunk of await client.chat.completions.create({ model, messages: user('tool'), tools, stream: true })) {
    for (const call of chunk.choices[0]?.delta?.tool_calls ?? []) pieces.push(call);
  }
  const ofFirst = pieces.filter((one) => one.index === 0);
  assert(ofFirst[0].id && ofFirst[0].function.name === 'get_weather');
  assert(ofFirst.slice(1).every((one) => !one.id));
  assert(ofFirst.filter((one) => one.function.arguments).length >= 2, JSON.stringify(pieces));
});

test('the client\'s tool runner', async () => {
  const asked = [];
  const run = (name) => ({ type: 'function', function: { name, description: name, parse: JSON.parse, parameters: { type: 'object', properties: {} },
                                                         function: (given) => { asked.push([name, given]); return '21'; } } });
  const runner = client.chat.completions.runTools({ model, messages: user('tool'), tools: [run('get_weather'), run('get_time')] });
  assert.equal(await runner.finalContent(), 'It is 21 °C in Paris.');
  assert.deepEqual(asked, [['get_weather', { city: 'Paris' }], ['get_time', { zone: 'Europe/Paris', h24: true }]]);
});

test('malformed calls keep their text', async () => {
  const open = await client.chat.completions.create({ model, messages: user('open'), tools: lenientTools });
  assert.match(open.choices[0].message.content, /get_wea/);
  assert.equal(open.choices[0].finish_reason, 'stop');
  assert(!open.choices[0].message.tool_calls?.length);
  const broken = await client.chat.completions.create({ model, messages: user('broken'), tools: lenientTools });
  assert.equal(broken.choices[0].message.tool_calls[0].function.arguments, '{"city": [');
  assert(broken.inferno.warnings.length > 0);
});

test('control tokens do not leak and characters are never cut', async () => {
  const control = await client.chat.completions.create({ model, messages: user('control') });
  assert.equal(control.choices[0].message.content, 'safe and sound');
  const pieces = [];
  for await (const chunk of await client.chat.completions.create({ model, messages: user('cut'), stream: true })) {
    pieces.push(chunk.choices[0]?.delta?.content ?? '');
  }
  assert.equal(pieces.join(''), 'Look: 😀 done');
  assert(pieces.includes('😀'), JSON.stringify(pieces));
  const cut = await client.chat.completions.create({ model, messages: user('cut'), max_completion_tokens: 3 });
  assert.equal(cut.choices[0].finish_reason, 'length');
  assert.match(cut.choices[0].message.content, /^Look: \ufffd*$/);
});

test('limits, stop strings, several answers and log probabilities', async () => {
  const short = await client.chat.completions.create({ model, messages: user('long'), max_tokens: 12 });
  assert.equal(short.choices[0].finish_reason, 'length');
  assert.equal(short.usage.completion_tokens, 12);
  const stop = await client.chat.completions.create({ model, messages: user('stop'), stop: ['STOP'] });
  assert.equal(stop.choices[0].message.content, 'one, two, ');
  assert.equal(stop.choices[0].finish_reason, 'stop');
  const three = await client.chat.completions.create({ model, messages: user('dice'), max_tokens: 6, n: 3, seed: 5 });
  assert.deepEqual(three.choices.map((one) => one.index), [0, 1, 2]);
  const again = await client.chat.completions.create({ model, messages: user('dice'), max_tokens: 6, n: 3, seed: 5 });
  assert.deepEqual(again.choices.map((one) => one.message.content), three.choices.map((one) => one.message.content));
  const logs = await client.chat.completions.create({ model, messages: user('think'), logprobs: true, top_logprobs: 3 });
  const { content } = logs.choices[0].logprobs;
  assert.equal(content.map((one) => one.token).join(''), 'Forty-two.');
  assert.equal(Buffer.from(content.flatMap((one) => one.bytes)).toString(), 'Forty-two.');
  assert(content.every((one) => one.top_logprobs.length === 3 && one.logprob <= 0));
  const dice = await client.chat.completions.create({ model, messages: user('dice'), max_tokens: 2, logprobs: true, top_logprobs: 6, temperature: 1 });
  assert(Math.abs(dice.choices[0].logprobs.content[1].logprob + Math.log(6)) < 0.01);
});

test('several answers are streamed by index', async () => {
  const texts = ['', '', ''];
  const stream = await client.chat.completions.create({ model, messages: user('dice'), max_tokens: 6, n: 3, seed: 5, stream: true });
  for await (const chunk of stream) for (const one of chunk.choices) texts[one.index] += one.delta.content ?? '';
  const whole = await client.chat.completions.create({ model, messages: user('dice'), max_tokens: 6, n: 3, seed: 5 });
  assert.deepEqual(texts, whole.choices.map((one) => one.message.content));
});

test('content in parts, developer messages and harmless fields', async () => {
  const answer = await client.chat.completions.create({
    model, messages: [{ role: 'developer', content: 'Be kind.' }, { role: 'user', content: [{ type: 'text', text: 'hi' }], name: 'ann' }],
    user: 'u', metadata: { a: 'b' }, store: false, service_tier: 'auto', parallel_tool_calls: true, prompt_cache_key: 'k', verbosity: 'low', tool_choice: 'auto',
    response_format: { type: 'text' }, reasoning_effort: 'low', temperature: null, stop: null });
  assert.equal(answer.choices[0].message.content, HELLO);
});

test('aborts', async () => {
  const stream = await client.chat.completions.create({ model, messages: user('long'), stream: true });
  let chunks = 0;
  for await (const _ of stream) if (++chunks === 5) break;  // breaking out aborts the request
  const control = new AbortController();
  const waiting = client.chat.completions.create({ model, messages: user('long') }, { signal: control.signal });
  setTimeout(() => control.abort(), 100);
  await assert.rejects(waiting, OpenAI.APIUserAbortError);
  await assert.rejects(client.chat.completions.create({ model, messages: user('long') }, { timeout: 150 }), OpenAI.APIConnectionTimeoutError);
  for (let tries = 0; ; ++tries) {
    const text = await (await fetch(`${server}/metrics`, { headers: { authorization: `Bearer ${key}` } })).text();
    if (/^vllm:num_requests_running\{[^}]*\} 0(\.0)?$/m.test(text)) break;
    assert(tries < 100, text);
    await new Promise((done) => setTimeout(done, 20));
  }
});

// ---- completions

test('completions of text, lists and tokens', async () => {
  const one = await client.completions.create({ model, prompt: 'Some', max_tokens: 10 });
  assert.equal(one.choices[0].text, ' some known text.');
  assert.equal(one.choices[0].finish_reason, 'stop');
  const echo = await client.completions.create({ model, prompt: 'Some', echo: true, max_tokens: 10 });
  assert.equal(echo.choices[0].text, 'Some some known text.');
  const list = await client.completions.create({ model, prompt: ['a', 'b'], n: 2, max_tokens: 2 });
  assert.deepEqual(list.choices.map((choice) => choice.index), [0, 1, 2, 3]);
  const ids = await client.completions.create({ model, prompt: [65, 66], max_tokens: 3 });
  assert.equal(ids.choices[0].text, ' some known text.');
  const lists = await client.completions.create({ model, prompt: [[65], [66, 67]], max_tokens: 3 });
  assert.equal(lists.choices.length, 2);
  const scene = await client.completions.create({ model, prompt: '<|to:think|>', parse_special: true, max_tokens: 20 });
  assert.match(scene.choices[0].text, /Forty-two\.$/);
  const plain = await client.completions.create({ model, prompt: '<|to:think|>', max_tokens: 20 });
  assert.equal(plain.choices[0].text, ' some known text.');
  assert(plain.inferno.warnings.length > 0);
});

test('completions are streamed', async () => {
  let text = '', finish = null;
  for await (const chunk of await client.completions.create({ model, prompt: 'Some', stream: true, max_tokens: 10 })) {
    text += chunk.choices[0]?.text ?? '';
    finish = chunk.choices[0]?.finish_reason ?? finish;
  }
  assert.equal(text, ' some known text.');
  assert.equal(finish, 'stop');
});

test('completions have the old shape of log probabilities', async () => {
  const { choices: [{ logprobs, text }] } = await client.completions.create({ model, prompt: 'Some', max_tokens: 10, logprobs: 2 });
  assert.equal(logprobs.tokens.join(''), text);
  assert.equal(logprobs.tokens.length, logprobs.token_logprobs.length);
  assert.equal(logprobs.tokens.length, logprobs.text_offset.length);
  assert.equal(logprobs.text_offset[0], 0);
});

// ---- responses

test('a response', async () => {
  const answer = await client.responses.create({ model, input: 'hi', instructions: 'Be kind.' });
  assert.equal(answer.output_text, HELLO);
  assert.equal(answer.status, 'completed');
  assert.match(answer.id, /^resp_[0-9a-f]{32}$/);
  assert.equal(answer.usage.output_tokens, 7);
  assert.equal(answer.instructions, 'Be kind.');
});

test('input tokens are counted without an answer', async () => {
  const body = { model, input: user('hi'), instructions: 'Be kind.', tools: flatTools };
  const counted = await client.responses.inputTokens.count(body);
  assert.equal(counted.object, 'response.input_tokens');
  assert.equal(counted.input_tokens, (await client.responses.create(body)).usage.input_tokens);
  assert((await client.responses.inputTokens.count({ model, input: 'x'.repeat(200_000) })).input_tokens > 32768);
  const chat = await client.post('/chat/completions/input_tokens', { body: { messages: user('hi'), tools } });
  assert.equal(chat.input_tokens, (await client.chat.completions.create({ model, messages: user('hi'), tools })).usage.prompt_tokens);
});

test('a response with reasoning', async () => {
  const answer = await client.responses.create({ model, input: user('think'), reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'], store: false });
  assert.deepEqual(answer.output.map((one) => one.type), ['reasoning', 'message']);
  assert.equal(answer.output[0].content[0].text, 'The user wants a number.');
  assert.equal(answer.output_text, 'Forty-two.');
  assert(answer.usage.output_tokens_details.reasoning_tokens >= 3);
  const next = await client.responses.create({ model, input: [...user('think'), ...answer.output, ...user('hi')] });
  assert.equal(next.output_text, HELLO);
});

test('a response stream', async () => {
  const types = [], numbers = [];
  let text = '', reasoning = '';
  for await (const event of await client.responses.create({ model, input: 'think', stream: true })) {
    types.push(event.type);
    numbers.push(event.sequence_number);
    if (event.type === 'response.output_text.delta') text += event.delta;
    if (event.type === 'response.reasoning_text.delta') reasoning += event.delta;
  }
  assert.deepEqual(types.slice(0, 3), ['response.created', 'response.in_progress', 'response.output_item.added']);
  assert.equal(types.at(-1), 'response.completed');
  assert.equal(text, 'Forty-two.');
  assert.equal(reasoning, 'The user wants a number.');
  assert.deepEqual(numbers, numbers.map((_, index) => index));
  const stream = client.responses.stream({ model, input: 'think' });
  assert.equal((await stream.finalResponse()).output_text, 'Forty-two.');
});

test('responses with tools in two rounds', async () => {
  for (const ask of [(body) => client.responses.create(body), (body) => client.responses.stream(body).finalResponse()]) {
    const input = user('tool');
    const first = await ask({ model, input, tools: [...flatTools, { type: 'web_search' }] });
    const calls = first.output.filter((one) => one.type === 'function_call');
    assert.deepEqual(calls.map((one) => [one.name, JSON.parse(one.arguments)]),
                     [['get_weather', { city: 'Paris' }], ['get_time', { zone: 'Europe/Paris', h24: true }]]);
    const outputs = calls.map((one, index) => ({ type: 'function_call_output', call_id: one.call_id,
                                                 output: index ? [{ type: 'input_text', text: '21' }] : '21' }));
    const clean = first.output.map(({ parsed_arguments, ...one }) => one);
    const second = await ask({ model, input: [...input, ...clean, ...outputs], tools: flatTools });
    assert.equal(second.output_text, 'It is 21 °C in Paris.');
  }
});

test('every kind of part is an item in its place, also text after a call', async () => {
  for (const ask of [(body) => client.responses.create(body), (body) => client.responses.stream(body).finalResponse()]) {
    const answer = await ask({ model, input: 'order', tools: flatTools.map((one) => ({ ...one, strict: false })) });
    assert.deepEqual(answer.output.map((one) => one.type), ['reasoning', 'message', 'function_call', 'message']);
    assert.equal(answer.output_text, 'Let me look it up. Then I am done.');
  }
  const chat = await client.chat.completions.stream({ model, messages: user('order'), tools: lenientTools, stop: [' up. Then'] }).finalChatCompletion();
  assert.equal(chat.choices[0].message.content, 'Let me look it up. Then I am done.');
  assert.equal(chat.choices[0].finish_reason, 'tool_calls');
});

test('a response that reaches its limit is incomplete', async () => {
  const answer = await client.responses.create({ model, input: 'long', max_output_tokens: 16 });
  assert.equal(answer.status, 'incomplete');
  assert.equal(answer.incomplete_details.reason, 'max_output_tokens');
  const types = [];
  for await (const event of await client.responses.create({ model, input: 'long', max_output_tokens: 16, stream: true })) types.push(event.type);
  assert.equal(types.at(-1), 'response.incomplete');
});

// ---- constrained output: without the constraint the known model's answers are other words

const place = { type: 'object', properties: { ok: { type: 'boolean' }, city: { enum: ['Oslo', 'Bonn'] } }, required: ['ok', 'city'], additionalProperties: false };
const checkPlace = (value) => {
  assert.deepEqual(Object.keys(value), ['ok', 'city']);
  assert.equal(typeof value.ok, 'boolean');
  assert(['Oslo', 'Bonn'].includes(value.city), JSON.stringify(value));
};
const pick = { type: 'function', name: 'pick', description: 'Picks', strict: false,
               parameters: parameters({ digit: { type: 'integer', minimum: 3, maximum: 5 } }) };
const isPick = (name, given) => {
  assert.equal(name, 'pick');
  assert([3, 4, 5].includes(JSON.parse(given).digit), given);
};

test('a response fits its schema', async () => {
  const text = { format: { type: 'json_schema', name: 'place', strict: true, schema: place } };
  for (const word of ['think', 'talk']) {
    const whole = await client.responses.parse({ model, input: word, text, seed: 3 });
    checkPlace(JSON.parse(whole.output_text));
    assert.equal(whole.status, 'completed');
    assert.deepEqual(whole.text.format.schema, place);
    const streamed = await client.responses.stream({ model, input: word, text, seed: 3 }).finalResponse();
    assert.equal(streamed.output_text, whole.output_text);
  }
  const thinking = await client.responses.create({ model, input: 'think', text });
  assert.equal(thinking.output[0].content[0].text, 'The user wants a number.');
  const any = await client.responses.create({ model, input: 'think', text: { format: { type: 'json_object' } }, max_output_tokens: 400 });
  assert.match(any.output_text, /^\{/);
  const plain = await client.responses.create({ model, input: 'think', text: { format: { type: 'text' } } });
  assert.equal(plain.output_text, 'Forty-two.');
  const error = await client.responses.create({ model, input: 'hi', text: { format: { type: 'json_schema', name: 'p', schema: { uniqueItems: true } } } }).catch((one) => one);
  assert.equal(error.status, 400);
  assert.equal(error.param, 'text.format.schema');
});

test('responses make the calls that are required', async () => {
  const choices = ['required', { type: 'function', name: 'pick' }, { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'pick' }, { type: 'web_search' }] }];
  for (const tool_choice of choices) {
    const offered = tool_choice === 'required' ? [pick] : [...flatTools, pick, { type: 'web_search' }];
    for (const ask of [(body) => client.responses.create(body), (body) => client.responses.stream(body).finalResponse()]) {
      const answer = await ask({ model, input: 'think', tools: offered, tool_choice, parallel_tool_calls: false });
      const call = answer.output.at(-1);
      assert.equal(call.type, 'function_call', JSON.stringify(answer.output));
      isPick(call.name, call.arguments);
      assert(!answer.output.some((one) => one.type === 'message'));
    }
  }
  const auto = await client.responses.create({ model, input: 'think', tools: [pick], tool_choice: 'auto' });
  assert.equal(auto.output_text, 'Forty-two.');
  const none = await client.responses.create({ model, input: 'tool', tools: flatTools, tool_choice: 'none' });
  assert.equal(none.tool_choice, 'none');
  await refused(client.responses.create({ model, input: 'hi', tools: [pick], tool_choice: { type: 'function', name: 'no_such' } }), OpenAI.BadRequestError, 400);
});

test('chat completions do the same', async () => {
  const response_format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: place } };
  checkPlace(JSON.parse((await client.chat.completions.parse({ model, messages: user('think'), response_format })).choices[0].message.content));
  const { name, description, parameters: schema } = pick;
  for (const tool_choice of ['required', { type: 'function', function: { name } },
                             { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name } }] } }]) {
    const answer = await client.chat.completions.create({ model, messages: user('think'), tool_choice, parallel_tool_calls: false,
      tools: [...(tool_choice === 'required' ? [] : tools), { type: 'function', function: { name, description, parameters: schema } }] });
    const [call] = answer.choices[0].message.tool_calls;
    isPick(call.function.name, call.function.arguments);
    assert.equal(answer.choices[0].finish_reason, 'tool_calls');
  }
});

test('what needs a store is refused', async () => {
  for (const more of [{ previous_response_id: 'resp_1' }, { conversation: 'conv_1' }, { background: true }]) {
    const error = await client.responses.create({ model, input: 'hi', ...more }).catch((one) => one);
    assert(error instanceof OpenAI.BadRequestError, String(error));
    assert.equal(error.param, Object.keys(more)[0]);
  }
});

test('a coding agent works through responses', async () => {
  const files = { 'main.c': 'int main() { return 1; }\n' };
  const agentTools = [['read_file', ['path']], ['write_file', ['path', 'text']]].map(([name, fields]) => (
    { type: 'function', name, description: name, strict: false, parameters: parameters(Object.fromEntries(fields.map((one) => [one, { type: 'string' }]))) }));
  // What a coding agent offers beside functions, every time.
  const others = [{ type: 'web_search' }, { type: 'local_shell' }, { type: 'custom', name: 'apply_patch', description: 'patch', format: { type: 'text' } }];
  const input = [{ type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'You are a coding agent.' }] },
                 { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'agent please fix main.c' }] }];
  let rounds = 0, answer = null;
  while (++rounds < 6) {
    answer = await client.responses.stream({ model, input, tools: [...agentTools, ...others], tool_choice: 'auto', parallel_tool_calls: false, store: false,
      include: ['reasoning.encrypted_content'], prompt_cache_key: 'session', reasoning: { effort: 'medium', summary: 'auto' },
      client_metadata: { 'x-agent': '1' } }).finalResponse();
    input.push(...answer.output.map(({ parsed_arguments, ...one }) => one));
    const calls = answer.output.filter((one) => one.type === 'function_call');
    if (calls.length === 0) break;
    for (const call of calls) {
      const given = JSON.parse(call.arguments);
      if (call.name === 'write_file') files[given.path] = given.text;
      input.push({ type: 'function_call_output', call_id: call.call_id, output: call.name === 'read_file' ? files[given.path] : 'written' });
    }
  }
  assert.equal(rounds, 3);
  assert.equal(answer.output_text, 'Done: main.c returns 0.');
  assert.equal(files['main.c'], 'int main() {\n  return 0;\n}\n');
});
