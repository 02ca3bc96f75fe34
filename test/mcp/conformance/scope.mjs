// The exclusions from the suite, with reasons. A name is a scenario, or SCENARIO:CHECK, or the FOLDER/ of
// scenarios. All other checks must pass.
const reasons = {
  'the server has no resources, because its tools are agents': [
    'resources-list',
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
    'resources-subscribe',
    'resources-unsubscribe',
    'sep-2164-resource-not-found',
    'caching:sep-2549-resources-list-caching-hints',
    'caching:sep-2549-resources-templates-list-caching-hints',
    'caching:sep-2549-resources-read-caching-hints',
  ],
  'the server has no prompts, and does not complete arguments': [
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
    'completion-complete',
    'caching:sep-2549-prompts-list-caching-hints',
    'input-required-result-non-tool-request',
  ],
  'an agent answers in text, without images, audio or embedded resources': [
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
  ],
  'sampling and roots are deprecated, and an agent has its own model': [
    'tools-call-sampling',
    'input-required-result-basic-sampling',
    'input-required-result-basic-list-roots',
    'input-required-result-multiple-input-requests',
    'server-stateless:sep-2575-server-rejects-undeclared-capability',
    'server-stateless:sep-2575-missing-capability-http-400',
  ],
  'logging over the protocol is deprecated, and the server does not use it': [
    'logging-set-level',
    'tools-call-with-logging',
    'server-stateless:sep-2575-server-no-log-without-loglevel',
  ],
  'the fixture asks custom questions, and an agent asks for approvals (test/mcp/server/calls.test.ts)': [
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
    'input-required-result-basic-elicitation',
    'input-required-result-request-state',
    'input-required-result-multi-round',
    'input-required-result-result-type',
    'input-required-result-ignore-extra-params',
    'input-required-result-missing-input-response',
    'input-required-result-capability-check',
    'server-stateless:sep-2575-http-server-no-independent-requests-on-stream',
    'tasks-mrtr-composition',
  ],
  'the fixture counts progress from 0 to 100, and an agent reports its steps (test/mcp/server/misuse.test.ts)':
    ['tools-call-with-progress'],
  'the server has no protocol sessions and no resumable streams, because any process can answer': [
    'server-sse-polling',
    'server-sse-multiple-streams:server-sse-multiple-streams-session',
  ],
  'no tool takes arguments as headers': ['http-custom-header-server-validation'],
  'a failed run is a completed task with isError, and failed is reserved for protocol errors': [
    'tasks-lifecycle:sep-2663-tasks-get-status-failed',
  ],
  'no tool requires tasks, so that every client gets an answer': ['tasks-required-task-error'],
}

const clientReasons = {
  'models read a schema without its dialect, and the server checks the arguments': [
    'json-schema-2020-12-preservation:json-schema-2020-12-client-$schema-preserved',
  ],
}

const toRules = (because) =>
  new Map(Object.entries(because).flatMap(([why, names]) => names.map((name) => [name, why])))

/** Per side, a reason and the excluded names. */
export const reasonsBySide = { server: reasons, client: clientReasons }

export const outOfScope = { server: toRules(reasons), client: toRules(clientReasons) }

/** Scenarios of the Tasks extension. They have no revision, so each is requested by name. */
export const taskScenarios = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
]
