// Validates answers against OpenAI's own API description (OpenAPI 3.1), with ajv.
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { readFileSync } from 'node:fs';

// OpenAPI 3.0's "nullable" is still used here and there, and alternatives overlap, so that "exactly one of" is never meant.
function modern(node) {
  if (Array.isArray(node)) return node.map(modern);
  if (node === null || typeof node !== 'object') return node;
  const { nullable, oneOf, discriminator, ...rest } = node;
  const made = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, modern(value)]));
  if (Array.isArray(oneOf)) made.anyOf = modern(oneOf);
  return nullable === true ? { anyOf: [made, { type: 'null' }] } : made;
}

export class Schemas {
  constructor(file) {
    this.document = modern(JSON.parse(readFileSync(file, 'utf8')));
    this.ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false, logger: false });
    addFormats(this.ajv);
    this.ajv.addSchema(this.document, 'openai');
    this.compiled = new Map();
    this.events = this.eventTypes();
  }

  // type of an event: the name of its schema
  eventTypes() {
    const schemas = this.document.components.schemas, found = new Map();
    for (const one of schemas.ResponseStreamEvent.anyOf) {
      const name = one.$ref.split('/').pop();
      for (const type of schemas[name].properties?.type?.enum ?? []) found.set(type, name);
    }
    return found;
  }

  check(name, value) {
    if (!this.compiled.has(name)) {
      this.compiled.set(name, this.ajv.compile({ $ref: `openai#/components/schemas/${name}` }));
    }
    const validate = this.compiled.get(name);
    if (validate(value)) return;
    const errors = validate.errors.slice(0, 12).map((one) => `  ${one.instancePath || '/'} ${one.message} (${one.schemaPath})`);
    throw new Error(`not a ${name}:\n${errors.join('\n')}\n${JSON.stringify(value, null, 1).slice(0, 3000)}`);
  }

  checkEvent(event) {
    const name = this.events.get(event.type);
    if (!name) throw new Error(`no event of this type is described: ${JSON.stringify(event)}`);
    this.check(name, event);
  }

  // One exchange: the path, the status, and the body as text.
  checkExchange({ path, method, status, type, body }) {
    if (status >= 400) return this.check('ErrorResponse', JSON.parse(body));
    if (type.includes('event-stream')) return this.checkStream(path, body);
    const value = JSON.parse(body);
    if (path.endsWith('/input_tokens')) this.check('TokenCountsResource', value);
    else if (path.endsWith('/chat/completions')) this.check('CreateChatCompletionResponse', value);
    else if (path.endsWith('/completions')) this.check('CreateCompletionResponse', value);
    else if (path.endsWith('/responses')) this.check('Response', value);
    else if (path.endsWith('/models')) this.check('ListModelsResponse', value);
    else if (path.includes('/models/')) this.check('Model', value);
    else throw new Error(`no schema for ${method} ${path}`);
  }

  checkStream(path, body) {
    for (const { event, data } of parseEvents(body)) {
      if (data === '[DONE]') continue;
      const value = JSON.parse(data);
      if (value.error && !value.type) this.check('ErrorResponse', value);
      else if (path.endsWith('/chat/completions')) this.check('CreateChatCompletionStreamResponse', value);
      else if (path.endsWith('/completions')) this.check('CreateCompletionResponse', unfinished(value));
      else {
        if (event !== value.type) throw new Error(`event: ${event}, but type ${value.type}`);
        this.checkEvent(value);
      }
    }
  }
}

// OpenAI sends null until a choice ends, which its description of this one stream forgets.
function unfinished(chunk) {
  return { ...chunk, choices: chunk.choices.map((one) => ({ ...one, finish_reason: one.finish_reason ?? 'stop' })) };
}

export function parseEvents(body) {
  return body.split('\n\n').filter((block) => block.split('\n').some((line) => line.startsWith('data:'))).map((block) => {
    const lines = block.split('\n');
    const of = (name) => lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length).trimStart()).join('\n');
    return { event: of('event:') || null, data: of('data:') };
  });
}
