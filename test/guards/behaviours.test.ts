import { SimulatedClock } from 'xstate'
import { createAgent, defineTool } from '../../src/index.js'
import { sampledRows } from '../support/extent.js'
// @ts-expect-error -- the file has no types
import * as bench from '../../bench/guards/behaviours.mjs'

interface Played {
  isHalted: boolean
  rule: string | null
  blocked: boolean
}
type Behaviour = { name: string }
type Play = (library: object, behaviour: Behaviour, marksPolling?: boolean) => Promise<Played>

const { behaviours, playBehaviour } = bench as {
  behaviours: { honest: Behaviour[] }
  playBehaviour: Play
}
const library = { createAgent, defineTool, SimulatedClock }

/** Their results do not report a wait. Without an annotation they look like a loop. */
const needAnnotation = [
  'a log that grows every twelfth read',
  'two sensors, read alternately',
  'a stock ticker while the market is closed',
  "a supervisor's heartbeat",
]

describe.each(sampledRows(behaviours.honest))('an honest agent on the live loop: $name', (behaviour) => {
  test('is neither halted nor refused with polling tools', async () => {
    const { isHalted, blocked, rule } = await playBehaviour(library, behaviour, true)
    expect({ isHalted, blocked, rule }).toEqual({ isHalted: false, blocked: false, rule: null })
  })

  test('is halted without annotations only if nothing reports the wait', async () => {
    const { isHalted } = await playBehaviour(library, behaviour)
    expect(isHalted).toBe(needAnnotation.includes(behaviour.name))
  })
})
