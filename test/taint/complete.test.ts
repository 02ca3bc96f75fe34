import { readFileSync } from 'node:fs'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { Features, AgentMachineEvent } from '../../machines/agent/context.js'
import type { ContentPart } from '../../machines/agent/messages.js'
import { agentSchema } from '../../src/core/config/agent-sections.js'
import type { AgentConfigInput } from '../../machines/agent/config.js'
import {
  type Agent,
  type AgentOptions,
  defineTool,
  type SessionAnswer,
  type RunSessionOptions,
  type SessionResult,
  type RunOptions,
  type SessionMessage,
} from '../../src/index.js'
import { checkRunOptions } from '../../src/core/agent/read-parts.js'
import type { ExecutedToolDefinition } from '../../src/core/tools/define-tool.js'
import { cli } from '../cli/support.js'
import { entrances, others } from './tables.js'

/**
 * The channels that text can pass through, each with its place in the table: the name of an entrance, a
 * feature or an exit, or the reason why it carries no text. The types or this test find an addition to one of
 * these lists without a row.
 */
type Rows<Name extends string> = Record<Name, string>

const rowOfEvent: Rows<AgentEvent['type']> = {
  run_started: 'exit: events',
  state_changed: 'exit: events',
  user_message: 'exit: events',
  stream_chunk: 'exit: events',
  tool_call_delta: 'exit: events',
  assistant_message: 'exit: events',
  tool_call: 'exit: events',
  tool_progress: 'exit: events',
  tool_result: 'exit: events',
  usage: 'exit: events',
  child_event: 'exit: events',
  retry: 'exit: events',
  waiting_for_slot: 'no words',
  guardrail: 'exit: events',
  budget_warning: 'exit: events',
  context_fitted: 'exit: events',
  tools_loaded: 'no: names of tools',
  handed_off: 'no: names of agents',
  step_prepared: 'no: names of models and tools',
  policy_decided: 'exit: events',
  approval_requested: 'exit: events',
  approval_decided: 'exit: events',
  grant_changed: 'no: limits that a person sets',
  elicitation_requested: 'exit: events',
  shield: 'exit: events',
  memory: 'no: no shield withholds what memory finds, and its query is the screened input',
  step_started: 'exit: events',
  step_progress: 'exit: events',
  step_completed: 'exit: events',
  warning: 'exit: events',
  error: 'exit: events',
  message_queued: 'no words',
  message_dequeued: 'no words',
  run_ended: 'exit: events',
}

const rowOfMachineEvent: Rows<AgentMachineEvent['type']> = {
  CANCEL: 'entrance: the answer, stopped before it is cleared',
  PAUSE: 'no words',
  RESUME: 'no words',
  STEER: 'entrance: steering',
  REPLY: 'entrance: a reply',
  APPROVE: 'entrance: edited arguments',
  REJECT: 'no: what a person says no with is looked at by no shield',
  APPROVAL_EXPIRED: 'no words',
  GRANT: 'no: limits that a person sets',
  REVOKE: 'no words',
  GRANT_ENDED: 'no words',
  TOOL_OUTPUT: 'entrance: what a client hands in',
  TOOL_RESULT: 'entrance: a result',
  CHILD_USAGE: 'no words',
  CHILD_WAITING: 'no: what a sub-agent asks is as its own shields let it through',
  TOOLS_LOADED: 'no: names of tools',
  SKILL_CHANGED: 'no: the app’s own words',
  HANDLE_SAVED: 'no: what the app’s own tool keeps for itself; with shields of results it is not shown',
  HANDED_OFF: 'no: names of agents and tools',
  BATCH_DONE: 'no words',
  DEADLINE: 'entrance: the answer, stopped before it is cleared',
  RESUMED: 'other: another process at each rest',
  RELEASED: 'no words',
  STORE_FAILED: 'no: the words of a store',
  'xstate.done.actor.model': 'entrance: the answer',
  'xstate.error.actor.model': 'entrance: a key in the words of a provider',
  'xstate.done.actor.conclusion': 'entrance: the last words at a limit',
  'xstate.error.actor.conclusion': 'entrance: a key in the words of a provider',
  'xstate.done.actor.fitting': 'other: a window to fit',
  'xstate.done.actor.inputShields': 'entrance: the user’s text',
  'xstate.done.actor.outputShields': 'entrance: the answer',
  'xstate.done.actor.callShields': 'entrance: the arguments of a call',
  'xstate.done.actor.resultShields': 'entrance: a result',
  'xstate.done.actor.retrieval': 'no: no shield withholds what memory finds',
  'xstate.done.actor.plan': 'no: the app’s own words',
  'xstate.done.actor.callGuards': 'other: guards that watch',
  'xstate.done.actor.resultGuards': 'other: guards that watch',
  'xstate.done.actor.backOff': 'no words',
  'xstate.done.actor.tools': 'no words',
  'xstate.error.actor.fitting': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.inputShields': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.outputShields': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.callShields': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.resultShields': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.retrieval': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.plan': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.callGuards': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.resultGuards': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.backOff': 'no: the message of a defect in the app or this package',
  'xstate.error.actor.tools': 'no: the message of a defect in the app or this package',
}

const rowOfPart: Rows<ContentPart['type']> = {
  text: 'entrance: a text in parts',
  image_url: 'entrance: the address of a picture',
  input_audio: 'no: sound is no text',
  file: 'entrance: the text of a file',
}

const rowOfFeature: Rows<keyof Features> = {
  inputShields: 'entrance: the user’s text',
  outputShields: 'entrance: the answer',
  callShields: 'entrance: the arguments of a call',
  resultShields: 'entrance: a result',
  retrieval: 'no: no shield withholds what memory finds',
  fitting: 'other: a window to fit',
  userGuards: 'other: guards that watch',
  structuredOutput: 'other: an output schema',
  stopWhen: 'no words',
  prepareStep: 'no: the app’s own words',
}

const rowOfToolOption: Rows<keyof ExecutedToolDefinition<never, never, never>> = {
  name: 'no: the app’s own words',
  description: 'no: the app’s own words',
  input: 'entrance: a key of the arguments',
  idempotent: 'no words',
  readOnly: 'no words',
  polling: 'no words',
  maxCalls: 'no words',
  endsRun: 'entrance: a result',
  keepsHandle: 'no words',
  defer: 'no: a call of it has its schema as its result, and another call runs like any',
  execute: 'entrance: a result',
  timeoutMs: 'no words',
  needsApproval: 'other: approval',
  client: 'other: a client call',
}

const rowOfAgentOption: Rows<Exclude<keyof AgentOptions, keyof AgentConfigInput>> = {
  model: 'entrance: a key in the words of a provider',
  instructions: 'no: the app’s own words',
  tools: 'entrance: a result',
  skills: 'no: the app’s own words; what a skill’s tool returns is a result',
  output: 'entrance: a key of an object',
  guards: 'other: guards that watch',
  stopWhen: 'no words',
  prepareStep: 'no: the app’s own words',
  models: 'entrance: a key in the words of a provider',
  sampling: 'no words',
  toolChoice: 'no words',
  extraBody: 'no: the app’s own words',
  prices: 'no words',
  clock: 'no words',
  inspect: 'other: an inspector',
  telemetry: 'exit: spans',
  store: 'other: a store that answers later',
  policy: 'no: the app’s own words',
  approvals: 'no: the app’s own words',
  shields: 'other: harmless shields everywhere',
  memory: 'no: no shield withholds what memory finds',
  tokenizer: 'other: a window to fit',
  interpreter: 'no words',
  budgets: 'other: a budget that is waited for',
}

/** The section contains only numbers and switches. */
const rowOfSection: Rows<keyof AgentConfigInput> = {
  preset: 'no words',
  limits: 'entrance: the last words at a limit',
  budget: 'no words',
  retry: 'no words',
  stream: 'other: one response instead of a stream',
  streamIdleMs: 'no words',
  contentIdleMs: 'no words',
  storeTimeoutMs: 'no words',
  completion: 'entrance: a key of an object',
  context: 'other: a window to fit',
  guardrails: 'other: guards that watch',
  toolCalls: 'no words',
  interactive: 'other: an interactive run',
}

const rowOfRunOption: Rows<keyof RunOptions> = {
  by: 'no: the app’s own words',
  session: 'no: the app’s own words',
  tags: 'no: the app’s own words',
  attachments: 'entrance: an attachment',
  signal: 'no words',
  limits: 'no words',
  context: 'no: the app’s own object goes to its own code',
  journal: 'exit: records',
  inspect: 'other: an inspector',
  budgets: 'other: a budget that is waited for',
}

/** By import name. */
const rowOfEntryPoint: Rows<string> = {
  '.': 'exit: results',
  './rehearsal': 'no: it plays the provider',
  './ai-sdk': 'no: it is the provider',
  './testing': 'no: it explores the bare machine',
  './diagram': 'exit: chart',
  './machine': 'no: the bare machine, with actors of the app',
  './mcp': 'other: MCP',
  './mcp/server': 'no: it sends what results and pending calls say, as runs tell of them',
  './otel': 'exit: spans',
  './memory': 'no: no shield withholds what memory finds',
  './fleet': 'exit: results',
  './skills': 'no: it reads the app’s own words',
  './studio': 'exit: studio',
  './ui': 'exit: chat',
  './ui/client': 'no: it has what a handler has sent',
  './agui': 'exit: chat',
  './stores': 'exit: records',
  './stores/file': 'other: the command line',
  './stores/postgres': 'exit: records',
  './stores/durable-object': 'exit: records',
  './durable': 'no: a chart of the app sees the output of an agent, as results tell of it',
  './restate': 'exit: driven',
  './dbos': 'exit: driven',
  './cedar': 'no: a policy decides, and no text comes from it but a reason',
  './opa': 'no: a policy decides, and no text comes from it but a reason',
  './records.schema.json': 'no: it says what records are',
  './package.json': 'no words',
}

const rowOfCommand: Rows<string> = {
  run: 'exit: formatted',
  batch: 'exit: results',
  eval: 'exit: results',
  budgets: 'no: they are amounts alone',
  grants: 'no: limits that a person sets',
  resume: 'exit: formatted',
  sessions: 'other: the command line',
  guards: 'other: the command line',
  diagram: 'exit: chart',
  paths: 'no: it explores the bare machine',
  diff: 'no: it compares bare machines',
  properties: 'no: it explores a bare machine',
  send: 'other: the command line',
  studio: 'exit: studio',
  stately: 'exit: studio',
  mcp: 'no: it sends what results and pending calls say, as runs tell of them',
}

/** The messages that any process can send to a session. `World` sends each where `send` is on. */
const rowOfMessage: Rows<SessionMessage['type']> = {
  cancel: 'other: told from another process',
  pause: 'no words',
  resume: 'other: told from another process',
  steer: 'entrance: steering',
  reply: 'entrance: a reply',
  message: 'entrance: a queued message',
  approve: 'entrance: edited arguments',
  reject: 'entrance: why a person refuses a call',
  toolOutput: 'entrance: what a client hands in',
  grant: 'no: limits that a person sets',
  revoke: 'no words',
}

/** The input and output of a drive. */
const rowOfDriveOption: Rows<keyof RunSessionOptions> = {
  by: 'no: the app’s own words',
  session: 'no: the app’s own words',
  tags: 'no: the app’s own words',
  input: 'entrance: the user’s text',
  turn: 'no words',
  answers: 'other: driven',
  at: 'no words',
  agent: 'no: the app’s own words',
  signal: 'no words',
  heartbeat: 'no words',
  maxRetryWaitMs: 'no words',
  context: 'no: the app’s own object goes to its own code',
  budgets: 'other: a budget that is waited for',
}

const rowOfDriveAnswer: Rows<SessionAnswer['type']> = {
  cancel: 'no: no shield looks at why it is stopped',
  resume: 'no words',
  steer: 'entrance: steering',
  approve: 'entrance: edited arguments',
  reject: 'entrance: why a person refuses a call',
  toolOutput: 'entrance: what a client hands in',
}

const rowOfRest: Rows<keyof SessionResult> = {
  session: 'no: the app’s own words',
  turn: 'no words',
  state: 'no words',
  reason: 'no words',
  head: 'no words',
  stopped: 'no words',
  undelivered: 'no words',
  waitUntil: 'no words',
  waitMs: 'no words',
  wakeAt: 'no words',
  wakeMs: 'no words',
  output: 'exit: driven',
  outputLength: 'no words',
  pending: 'exit: driven',
  pendingCount: 'no words',
  error: 'exit: driven',
  totalTokens: 'no words',
  cost: 'no words',
}

const rowOfMethod: Rows<Exclude<keyof Agent, 'machine' | '~context'>> = {
  run: 'exit: results',
  resume: 'other: another process at each rest',
  send: 'other: told from another process',
  watch: 'exit: watched',
  replay: 'exit: replayed',
  fork: 'other: forks and replays of every record',
  branch: 'other: forks and replays of every record',
  listBranches: 'no words',
  selectBranch: 'no words',
  readSession: 'exit: read',
  rename: 'no words',
  deleteSession: 'no words',
  deleteSessions: 'no words',
  createInput: 'no: it is for the bare machine, which has no exits of its own',
  config: 'no words',
  asTool: 'other: a sub-agent',
  withObject: 'exit: results',
  objectOf: 'exit: results',
}

/** The exits that `World.exits` searches. `records` are the store's records. */
const exits = [
  'events',
  'printed',
  'results',
  'formatted',
  'requests',
  'replayed',
  'read',
  'listed',
  'inspected',
  'chart',
  'spans',
  'records',
  'studio',
  'film',
  'chat',
  'watched',
  'inbox',
  'driven',
]

const tables: Record<string, Rows<string>> = {
  rowOfEvent,
  rowOfMachineEvent,
  rowOfPart,
  rowOfFeature,
  rowOfToolOption,
  rowOfAgentOption,
  rowOfSection,
  rowOfRunOption,
  rowOfEntryPoint,
  rowOfCommand,
  rowOfMessage,
  rowOfMethod,
  rowOfDriveOption,
  rowOfDriveAnswer,
  rowOfRest,
}

const rows = Object.entries(tables).flatMap(([table, each]) =>
  Object.entries(each).map(([name, row]) => [table, name, row] as const),
)

test.each(rows)('%s: %s has its row: %s', (_table, _name, row) => {
  const [, kind, name = ''] = /^(entrance|other|exit|no)(?:: (.*)| words)$/.exec(row) ?? []
  const known: Record<string, readonly string[]> = {
    entrance: Object.keys(entrances),
    other: others,
    exit: exits,
  }
  expect(kind).toBeDefined()
  if (kind !== undefined && kind !== 'no') expect(known[kind]).toContain(name)
})

test('every kind of event has a row', () => {
  const source = readFileSync('machines/agent/announcements.ts', 'utf8')
  const types = [...source.matchAll(/\btype: '(\w+)'/g)].map(([, type]) => type)
  expect(new Set(Object.keys(rowOfEvent))).toEqual(new Set(types))
})

test('every option of a tool has a row', () => {
  const wrong = (): unknown =>
    defineTool({ name: 'a', description: 'A.', input: { type: 'object' }, odd: 1 } as never)
  const [, listed = ''] = /The options are (.*)\./.exec(messageOf(wrong)) ?? []
  expect(new Set(listed.split(', '))).toEqual(new Set(Object.keys(rowOfToolOption)))
})

test('every section of the configuration has a row, and every option of an agent and of a run', () => {
  expect(new Set(agentSchema.keys.map(([name]) => name))).toEqual(new Set(Object.keys(rowOfSection)))
  const [, listed = ''] = /are (.*?)\./.exec(messageOf(() => checkRunOptions({ odd: 1 }))) ?? []
  expect(listed === '' ? [] : listed.split(/, | and /).filter((key) => !(key in rowOfRunOption))).toEqual([])
})

test('every entry point of the package has a row', () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: object }
  expect(new Set(Object.keys(rowOfEntryPoint))).toEqual(new Set(Object.keys(exports)))
})

test('every command has a row', async () => {
  const { out } = await cli(['--help'])
  const listed = [...out.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name)
  expect(new Set(listed)).toEqual(new Set(Object.keys(rowOfCommand)))
})

function messageOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    return (error as Error).message
  }
  return ''
}
