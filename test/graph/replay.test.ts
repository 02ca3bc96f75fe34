import { agentMachine } from '../../machines/agent.machine.js'
import { agentSpace, coverPaths, replay } from '../../src/testing/index.js'
import { AgentHarness } from '../support/agent-harness/agent-harness.js'

const { paths } = coverPaths(agentMachine, { ...agentSpace(), coverage: 'transition-pairs' })
const sent: string[] = []

test.each(paths.map((path, i) => [`${i + 1}. with ${path.input}: ${path.name}`, path] as const))(
  'the live agent goes the same way, %s',
  async (_, path) => {
    const harness = new AgentHarness(path.steps)
    expect(await replay(path, harness)).toEqual({ ok: true, steps: path.steps.length })
    sent.push(...harness.sent)
  },
)

test('nearly everything was caused in its world: few events were handed to the machine', () => {
  expect([...new Set(sent)].sort()).toEqual([
    'BATCH_DONE',
    'CHILD_RESTS',
    'CHILD_USAGE',
    'STORE_FAILED',
    'TOOL_RESULT',
    'xstate.done.actor.tools',
    'xstate.error.actor.backOff',
    'xstate.error.actor.tools',
  ])
})
