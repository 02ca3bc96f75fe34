import { StateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { agentSpace, checkProperties, type PropertyReport } from '../../src/testing/index.js'
import { sampledKinds } from '../support/extent.js'
import {
  agentProperties,
  decisionProperties,
  undisturbedProperties,
  withoutDisturbances,
  withoutRevocations,
} from './agent-properties.js'
import { exploreWhole } from './whole-graph.js'

/**
 * `npm run suite -- graph` explores every input and tries each fault. `npm test` explores one input with one step, `.ci/run` four
 * steps, and both try each third fault.
 */
const isWhole = process.env.STATEWRIGHT_GRAPH === 'all'
const sample = {
  only: sampledKinds([
    'with every shield',
    'with sub-agents',
    'watching repetition, halting immediately',
    'interactive',
  ]),
  maxSteps: 1,
}
const properties = { ...decisionProperties, ...agentProperties, ...undisturbedProperties }
type Name = keyof typeof properties
let reports: Record<Name, PropertyReport>

// Skipped when tests are only listed.
beforeAll(() => {
  const space = agentSpace(isWhole ? {} : sample)
  reports = {
    ...(isWhole
      ? exploreWhole().properties
      : {
          ...checkProperties(agentMachine, decisionProperties, withoutRevocations(space)),
          ...checkProperties(agentMachine, agentProperties, space),
        }),
    ...checkProperties(agentMachine, undisturbedProperties, withoutDisturbances(space)),
  }
})

test.each(Object.keys(properties) as Name[])('%s', (name) => {
  const { holds, message, begun, bounded } = reports[name]
  if (holds !== true) throw new Error(message)
  expect(bounded).toBeNull()
  expect(begun).toBeGreaterThan(0)
})

/** The chart with one fault that the property must detect. `only` lists the inputs that reveal it. */
const mutants: Record<Name, { machine: typeof agentMachine; only: string; story: RegExp }> = {
  'every approval that is asked for is given, refused, or ended with the run, if people answer': {
    machine: agentMachine.provide({ guards: { awaitsApproval: () => false, isLastApproval: () => false } }),
    only: 'interactive',
    story: /→ WAITING_FOR_INPUT\.approval\nand stays there forever\.$/,
  },
  'from every state there is a way to an end': {
    machine: spoil((config) => {
      config.on = { PAUSE: config.on.PAUSE, 'xstate.error.actor.*': config.on['xstate.error.actor.*'] }
      config.states.PAUSED.on = {}
    }),
    only: 'interactive',
    story: /the goal is unreachable from WAITING_FOR_TOOL\.executing\n[^]*pause +→/,
  },
  'CANCEL leads to CANCELLED, and no request is made in between': {
    machine: spoil((config) => {
      config.on.CANCEL = '.RUNNING.asking.concluding'
    }),
    only: 'interactive',
    story: /is violated in RUNNING\.asking\.concluding before the goal holds\n.*\n.*\n {2}cancel/,
  },
  'no state but CANCELLED follows CANCEL': {
    machine: spoil((config) => {
      config.states.PAUSED.on.CANCEL = {}
    }),
    only: 'interactive',
    story: /does not hold in PAUSED\n[^]*cancel +→ PAUSED$/,
  },
  'every run reaches an end': {
    machine: agentMachine.provide({ guards: { isLastApproval: () => false } }),
    only: 'interactive',
    story: /→ WAITING_FOR_INPUT\.approval\nand stays there forever\.$/,
  },
  'every cycle uses up a step, an attempt, an answer or a result': {
    machine: agentMachine.provide({
      guards: { mayRetry: () => true },
      actions: { scheduleRetry: () => undefined },
    }),
    only: 'interactive',
    story:
      /the rank is unchanged when the machine returns to RUNNING\.asking\.requesting\n[^]*back-off elapsed/,
  },
}

const faults = Object.entries(mutants).filter((_, i) => isWhole || i % 3 === 0)

test.each(faults)('a machine with a fault breaks: %s', (name, { machine, only, story }) => {
  const small = agentSpace({ only: [only], maxSteps: 1 })
  const isUndisturbed = name in undisturbedProperties
  const property = properties[name as Name]
  const checked = checkProperties(machine, { property }, isUndisturbed ? withoutDisturbances(small) : small)
  const { property: report } = checked
  expect(report.holds).toBe(false)
  expect(report.message).toMatch(story)
})

interface SpoiledConfig {
  on: Record<string, unknown>
  states: { PAUSED: { on: Record<string, unknown> } }
}

function spoil(change: (config: SpoiledConfig) => void): typeof agentMachine {
  const { config } = agentMachine
  const copy = {
    ...config,
    on: { ...config.on },
    states: { ...config.states, PAUSED: { ...config.states?.PAUSED, on: { ...config.states?.PAUSED?.on } } },
  }
  change(copy as unknown as SpoiledConfig)
  return new StateMachine(copy as never, agentMachine.implementations as never) as never
}
