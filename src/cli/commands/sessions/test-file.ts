/** Test runners. */
export const runners = ['jest', 'vitest', 'node'] as const

export type Runner = (typeof runners)[number]

/** The parts of a session test. Paths are relative to the test. */
export interface TestFile {
  session: string
  runner: Runner
  fixture: string
  /** The module with the agent, and whether it exports a function that makes one; null: made from the recording. */
  agent: { module: string; isFunction: boolean } | null
  /** For an agent that is made from the recording: its prompt, if known, and the module of its tools. */
  instructions: string | null | undefined
  tools: string | null
  isLive: boolean
}

/** The source of a test that plays a recorded session. */
export function formatTestFile(file: TestFile): string {
  const { session, runner, fixture, agent, isLive } = file
  const play = `replaySession(agent, recording${isLive ? ", { tools: 'live' }" : ''})`
  return [
    '// A session that plays as it was recorded: no model is asked, and no key is needed.',
    `// It was written by 'statewright sessions export ${session} --as test', and is yours to change.`,
    "import { readFileSync } from 'node:fs'",
    ...(runner === 'jest' ? [] : [`import { test } from '${runner === 'node' ? 'node:test' : 'vitest'}'`]),
    ...(agent?.isFunction ? ["import { memoryStore } from 'statewright'"] : []),
    `import { replaySession${agent ? '' : ', createRecordedAgent'} } from 'statewright/testing'`,
    ...(agent
      ? [`import ${agent.isFunction ? 'makeAgent' : 'agent'} from ${quoteLiteral(agent.module)}`]
      : []),
    ...(file.tools === null ? [] : [`import tools from ${quoteLiteral(file.tools)}`]),
    '',
    `const recording = JSON.parse(readFileSync(new URL(${quoteLiteral(fixture)}, import.meta.url), 'utf8'))`,
    ...(agent?.isFunction ? ['const agent = await makeAgent({ store: memoryStore() })'] : []),
    ...(agent ? [] : formatRecordedAgent(file)),
    '',
    `test(${quoteLiteral(`session ${session} plays as it was recorded`)}, async () => {`,
    `  await ${play}`,
    '})',
    '',
  ].join('\n')
}

function formatRecordedAgent({ instructions, tools }: TestFile): string[] {
  const changes = [
    ...(instructions === undefined ? [] : [`  instructions: ${quoteLiteral(instructions ?? '')},`]),
    ...(tools === null ? [] : ['  tools,']),
  ]
  return [
    '',
    "// The agent as it was recorded. Put your own in its place: import { agent } from './agent.mjs'",
    ...(changes.length === 0
      ? ['const agent = createRecordedAgent(recording)']
      : ['const agent = createRecordedAgent(recording, {', ...changes, '})']),
  ]
}

/** A string literal on one line. */
function quoteLiteral(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${inside.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`
}
