import { agentMachine } from '../../src/index.js'
import { agentSpace, canReach, checkProperties, type Moment, never } from '../../src/testing/index.js'

type Snapshot = Moment<typeof agentMachine>

const space = agentSpace({ only: ['with skills', 'with skills and result shields'] })
const isLoaded = ({ context }: Snapshot): boolean => context.skills.length > 0
const runs =
  (tool: string) =>
  ({ context }: Snapshot): boolean =>
    context.calls.some(({ name, started }) => name === tool && started === true)

test('no state runs a call of another tool while a skill only allows look', () => {
  const forbidden = (snapshot: Snapshot): boolean => isLoaded(snapshot) && runs('read')(snapshot)
  const { allowed } = checkProperties(agentMachine, { allowed: never<typeof agentMachine>(forbidden) }, space)
  expect(allowed.holds).toBe(true)
})

test('its own tool runs with the skill, the other tool runs without it, and each loaded skill can be unloaded', () => {
  const reach = (is: (snapshot: Snapshot) => boolean): number =>
    checkProperties(agentMachine, { found: canReach<typeof agentMachine>(() => true, { from: is }) }, space)
      .found.begun
  expect(reach((snapshot) => isLoaded(snapshot) && runs('look')(snapshot))).toBeGreaterThan(0)
  expect(reach((snapshot) => !isLoaded(snapshot) && runs('read')(snapshot))).toBeGreaterThan(0)
  expect(reach((snapshot) => isLoaded(snapshot) && runs('load_skill')(snapshot))).toBeGreaterThan(0)
})
