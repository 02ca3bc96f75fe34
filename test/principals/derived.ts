import { readFileSync } from 'node:fs'
import { type Agent, createAgent, defineAgents, memoryStore } from '../../src/index.js'
import type { DbosSessions } from '../../src/dbos/index.js'
import type { Answer } from '../../src/studio/protocol.js'
import type { Studio } from '../../src/studio/index.js'
import { cli } from '../cli/support.js'
import { pageRoutes, studioRoutes } from '../support/routes.js'
import { restateHandlers } from './surfaces/hosts.js'

// Lists that cannot be derived are written by hand. Their types require the full set, so the compiler finds a
// missing route.

/** The studio page's messages. Each has a row of `studio.answers`. */
export const studioAnswers: Record<Answer['type'], true> = {
  approve: true,
  reject: true,
  toolOutput: true,
  reply: true,
  steer: true,
  pause: true,
  resume: true,
  cancel: true,
  revoke: true,
}

const dbosMethods: Record<keyof DbosSessions, true> = {
  start: true,
  enqueue: true,
  answer: true,
  drain: true,
}

const studioMethods: Record<keyof Studio, true> = { url: true, attach: true, close: true }

/** Every entry point that could start, continue or answer work, by name. */
export async function found(): Promise<string[]> {
  const store = memoryStore()
  const model = { provider: 'p', model: 'm', request: () => Promise.reject(new Error('Not asked.')) }
  const agent = createAgent({ model, store })
  const members: (keyof Agent)[] = Object.keys(agent) as (keyof Agent)[]
  return [
    ...members.map((name) => `agent.${name}`),
    ...exportsOfAll(),
    ...['chatHandler', 'aguiHandler'].flatMap((of) => Object.keys(pageRoutes).map((to) => `${of}.${to}`)),
    ...studioRoutes.map((to) => `studio.${to}`),
    ...Object.keys(studioMethods).map((name) => `Studio.${name}`),
    ...Object.keys(dbosMethods).map((name) => `dbosSessions.${name}`),
    ...Object.keys(restateHandlers(defineAgents({ some: agent }))).map((name) => `restateSessions.${name}`),
    ...(await commands()).map((name) => `statewright ${name}`),
  ]
}

/** The package's exported functions and values with lowercase names. */
function exportsOfAll(): string[] {
  const root = new URL('../../', import.meta.url)
  const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    exports: Record<string, string | { default: string; node?: string }>
  }
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [entry.node ?? entry.default],
  )
  const all = entries.flatMap((entry) => {
    const source = entry.replace('./dist/', '').replace(/\.js$/, '.ts')
    const text = readFileSync(new URL(source, root), 'utf8')
    const lists = [...text.matchAll(/^export \{([^}]*)\}/gm)].map(([, list = '']) => list)
    return lists.flatMap((list) => list.split(',').map((name) => name.trim()))
  })
  return [...new Set(all.filter((name) => /^[a-z]\w*$/.test(name)))]
}

/** Every command, from the help. */
async function commands(): Promise<string[]> {
  const namesIn = (help: string): string[] =>
    [...help.matchAll(/^ {2}(\w[\w-]*(?: [\w-]+)?) {2,}/gm)].map(([, name = '']) => name)
  const all = namesIn((await cli(['--help'])).out)
  const groups: string[] = all.filter((name) => name === 'sessions')
  const inside = await Promise.all(groups.map(async (name) => namesIn((await cli([name, '--help'])).out)))
  return [...all.filter((name) => !groups.includes(name)), ...inside.flat()]
}

/** Entries without rows, by reason. */
const reasons: Record<string, string[]> = {
  'it makes what rows are about': [
    'createAgent',
    'defineAgents',
    'chatHandler',
    'aguiHandler',
    'startStudio',
    'dbosSessions',
    'restateSessions',
    'agent.asTool',
    'toolSearch',
    'handoff',
  ],
  'a run of the machine without a store begins a session of its own, which no other process reaches': [
    'agent.machine',
    'agent.createInput',
    'agentMachine',
  ],
  'it has no session at hand': [
    'agent.config',
    'agent.withObject',
    'agent.objectOf',
    'getCacheHitRate',
    'skills',
    'instructionsFrom',
    'pendingCalls',
    'outputOf',
    'usageOf',
    'idempotencyKey',
    'resolveConfig',
    'createEventFormatter',
    'openaiChat',
    'withFallbacks',
    'openaiResponses',
    'languageModel',
    'systemClock',
    'memoryJournal',
    'objectOrThrow',
    'orThrow',
    'restoreSession',
    'createSession',
    'formatSnippets',
    'defineShield',
    'llamaGuard',
    'openaiModeration',
    'patternShield',
    'piiShield',
    'runShields',
    'secretsShield',
    'defineTool',
    'aiTools',
    'cedar',
    'opa',
    'toolContent',
    'sleepUntil',
    'defineToolGroup',
    'defineGuard',
    'presets',
    'checkSessionId',
    'mcpTools',
    'loopbackSignIn',
    'finishMcpSignIn',
    'mcpPrompt',
    'mcpResources',
    'fileTokenStore',
    'loadAttachment',
    'memory',
    'restoreMemory',
    'parseSnippets',
    'parseCases',
    'parseReport',
    'compareReports',
    'formatReport',
    'formatReportPage',
    'otel',
    'redactEvent',
    'createBudget',
    'createLimiter',
    'flexibleLimiter',
    'statewright budgets',
    'createInspectorOptions',
    'runnableCalls',
    'createInput',
    'startInspector',
  ],
  'it changes a title in lists, and nothing of the session’s work': [
    'agent.rename',
    'statewright sessions rename',
  ],
  'it is a store: what reaches it may do anything to its sessions': [
    'memoryStore',
    'openStore',
    'fileStore',
    'postgresStore',
    'durableObjectStore',
    'checkStore',
  ],
  'it shows what a run or a transcript in hand says': [
    'toAGUIMessages',
    'toAGUI',
    'toAGUIEnds',
    'toEventStreamResponse',
    'foldTranscript',
    'toUIMessageStream',
    'toUIMessageStreamResponse',
    'toUIMessages',
  ],
  'it is about machines, not sessions': [
    'toChart',
    'readTransitionCounts',
    'toDot',
    'agentLook',
    'toMachineJson',
    'toStately',
    'toMermaid',
    'toOverview',
    'toScxml',
    'toOverviewSvg',
    'toSvg',
    'statewright diagram',
    'statewright stately',
    'statewright paths',
    'statewright diff',
    'statewright properties',
    'toDifferenceChart',
  ],
  'it is the page’s side: it asks a handler, whose rules hold': ['chatTransport'],
  'it is for tests, and plays what it is given on a store of its own': [
    'judge',
    'startRehearsal',
    'loadScenario',
    'parseScenario',
    'largestExpense',
    'listAgentEvents',
    'agentInvariants',
    'agentInputs',
    'findHistoryProblem',
    'agentSpace',
    'serializeAgentState',
    'generatePaths',
    'generateJestTests',
    'checkInvariants',
    'createMachineHarness',
    'pathOf',
    'replaySession',
    'checkSessionLog',
    'createRecordedAgent',
    'recordSession',
    'formatPath',
    'canReach',
    'checkProperties',
    'always',
    'never',
    'leadsTo',
    'until',
    'decreases',
    'checkStory',
    'generateStoryTests',
    'explore',
    'diffMachines',
    'compareGuards',
    'isFinal',
    'checkProvider',
    'checkAgent',
    'formatAgentReport',
    'chaosModel',
    'chaosTool',
    'chaosStore',
    'formatProviderReports',
    'replay',
    'replayGuards',
    'replaySteps',
    'formatCoverage',
    'createDoneActorEvent',
    'createErrorActorEvent',
  ],
  'it sends what studio.session and studio.end show, as it changes': ['studio.live'],
  'it stores searches of the list, and nothing of a session': ['studio.views'],
  'it shows the state and the events of a machine, and no run of an agent': ['studio.machine'],
  'it shows the messages of studio.moment, as one request had them': ['studio.request'],
  'it opens and closes, and shows the run to the program that has its handle': [
    'Studio.url',
    'Studio.attach',
    'Studio.close',
  ],
  'it queues the drives of dbosSessions.enqueue, or no more of them': [
    'dbosSessions.start',
    'dbosSessions.drain',
  ],
  'its page is startStudio’s': ['statewright studio'],
  'it is mcpServer for one client, who may see and continue every session': [
    'serveMcpStdio',
    'statewright mcp',
  ],
  'it begins sessions of its own, of an evaluation whose id the caller makes, and goes on with those alone': [
    'evaluate',
  ],
  'it reads sessions, and writes nothing': ['readSessionCases'],
  'it runs runSession for the sessions whose time has come': ['wakeSessions'],
  'it runs evaluate, with the agent of a module': ['statewright eval'],
  'it runs runAll, with the agent of a module': ['statewright batch'],
  'it reads every session, and says which a module of agents may go on with': ['statewright sessions check'],
}

export const exempt: Record<string, string> = Object.fromEntries(
  Object.entries(reasons).flatMap(([because, names]) => names.map((name) => [name, because])),
)
