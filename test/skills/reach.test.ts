import { agentMachine } from '../../src/index.js'
import { agentSpace, canReach, checkProperties, type Moment, never } from '../../src/testing/index.js'

type Snapshot = Moment<typeof agentMachine>

const space = agentSpace({ only: ['with skills', 'with skills and result shields'] })
const isLoaded = ({ context }: Snapshot): boolean => context.skills.length > 0
const runs =
  (tool: string) =>
  ({ context }: Snapshot): boolean =>
    context.calls.some(({ name, started }) => name === tool && started === true)

test('while a skill allows look alone, no state has a call of another tool that runs', () => {
  const forbidden = (snapshot: Snapshot): boolean => isLoaded(snapshot) && runs('read')(snapshot)
  const { allowed } = checkProperties(agentMachine, { allowed: never<typeof agentMachine>(forbidden) }, space)
  expect(allowed.holds).toBe(true)
})

test('its own tool runs then, the other one runs without it, and each skill that is loaded can be taken back', () => {
  const reach = (is: (snapshot: Snapshot) => boolean): number =>
    checkProperties(agentMachine, { found: canReach<typeof agentMachine>(() => true, { from: is }) }, space)
      .found.begun
  expect(reach((snapshot) => isLoaded(snapshot) && runs('look')(snapshot))).toBeGreaterThan(0)
  expect(reach((snapshot) => !isLoaded(snapshot) && runs('read')(snapshot))).toBeGreaterThan(0)
  expect(reach((snapshot) => isLoaded(snapshot) && runs('load_skill')(snapshot))).toBeGreaterThan(0)
})
