import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { render } from 'state-machine-cat'
import { type AnyStateMachine, createMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { type Chart, toChart, type ChartState, flattenStates } from '../../src/diagram/chart.js'
import { toMachineJson, toStately, toMermaid, toScxml } from '../../src/diagram/text-formats.js'
import { listTransitions } from '../../src/core/chart/state-labels.js'
import { single, workshop } from './machines.js'

const statesOf = (chart: Chart): ChartState[] => flattenStates(chart.root)
const idsOf = (machine: AnyStateMachine): string[] =>
  listTransitions(machine).map(({ declared }) => declared.id)

describe('JSON', () => {
  it('recreates the machine: every state, transition, guard and actor', () => {
    const again = createMachine(JSON.parse(toMachineJson(agentMachine)))
    expect(idsOf(again)).toEqual(idsOf(agentMachine))
    expect(toChart(again)).toEqual(toChart(agentMachine))
  })

  it('contains no function, and names those that have a name', () => {
    const config = JSON.parse(toMachineJson(workshop))
    expect(config.states['a state'].entry).toEqual({ type: 'greet' })
    expect(config.states['a state'].after[1000].actions).toEqual({ type: 'actions' })
    expect(config.states['a state'].on['go.on'].guard.type).toBe('and(isOpen, not(is "late" & <old>))')
    expect(Object.keys(createMachine(config).states)).toEqual(Object.keys(workshop.states))
  })

  it('keeps a state that has no other representable content', () => {
    const machine = createMachine({
      id: 'm',
      initial: 'a',
      states: { a: { type: 'final', output: () => 1 } },
    })
    expect(JSON.parse(toMachineJson(machine)).states).toEqual({ a: { type: 'final' } })
  })
})

describe("a file for Stately's editors", () => {
  it('is a program that creates the same machine', async () => {
    const folder = await mkdtemp(join(import.meta.dirname, '.stately-'))
    try {
      const file = join(folder, 'machine.mjs')
      await writeFile(file, toStately(agentMachine))
      const { machine } = (await import(pathToFileURL(file).href)) as { machine: AnyStateMachine }
      expect(toChart(machine)).toEqual(toChart(agentMachine))
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('SCXML, parsed by another program', () => {
  interface Read {
    states: { name: string; type: string; statemachine?: Read }[]
    transitions?: { from: string; to: string; event?: string; cond?: string }[]
  }
  const parse = async (machine: AnyStateMachine): Promise<Read> => {
    const read: unknown = await render(toScxml(toChart(machine)), { inputType: 'scxml', outputType: 'json' })
    return (typeof read === 'string' ? JSON.parse(read) : read) as Read
  }
  const nested = (read: Read): Read['states'] =>
    read.states.flatMap((state) => [state, ...(state.statemachine ? nested(state.statemachine) : [])])
  const transitions = (read: Read): NonNullable<Read['transitions']> => [
    ...(read.transitions ?? []),
    ...read.states.flatMap(({ statemachine }) => (statemachine ? transitions(statemachine) : [])),
  ]

  it('has every state', async () => {
    const names = nested(await parse(agentMachine)).map(({ name }) => name)
    const expected = statesOf(toChart(agentMachine)).map(({ id }) => (id === '(root)' ? 'agent' : id))
    expect(names).toEqual(expect.arrayContaining(expected))
  })

  it('has every transition that has a target, with its event and guard', async () => {
    const read = transitions(await parse(agentMachine)).map(({ from, to, event = '', cond = '' }) => [
      from,
      to,
      event,
      cond,
    ])
    const expected = statesOf(toChart(agentMachine)).flatMap(({ id, transitions: own }) =>
      own.flatMap(({ targets, event, when }) =>
        targets.map((target) => [
          id === '(root)' ? 'agent' : id,
          target,
          event.replace('xstate.done.actor', 'done.invoke').replace('xstate.error.actor', 'error.platform'),
          when === null || when === 'else' ? '' : when,
        ]),
      ),
    )
    expect(read).toEqual(expect.arrayContaining(expected))
  })

  it('gives unusual names unique ids, and starts timers', async () => {
    const scxml = toScxml(toChart(workshop))
    expect(nested(await parse(workshop)).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['work_shop', 'a_state', 'a-state', 'both', 'both.left.off', 'gone']),
    )
    expect(scxml).toMatch(/<send event="xstate\.after\.1000\.[^"]+" id="[^"]+" delay="1000ms"\/>/)
    expect(scxml).toContain('cond="and(isOpen, not(is &quot;late&quot; &amp; &lt;old&gt;))"')
    expect(scxml).toContain('<parallel id="both">')
  })
})

describe('Mermaid', () => {
  const chart = toChart(agentMachine)
  const lines = toMermaid(chart).split('\n')

  it('declares every state once, with its actor', () => {
    const declared = lines.filter((line) => /^ +state "/.test(line))
    expect(declared.filter((line) => !line.includes('as any_s_'))).toHaveLength(statesOf(chart).length - 1)
    expect(declared).toContain(
      '      state "requesting<br/>invoke requestModel" as s_RUNNING_asking_requesting',
    )
  })

  it('draws or notes every transition with its guard', () => {
    const text = lines.join('\n')
    for (const { when, on } of statesOf(chart).flatMap(({ transitions }) => transitions)) {
      expect(text).toContain(when === null ? on : when === 'else' ? 'else' : `[${when}]`)
    }
    expect(text).toContain('s_RUNNING_asking_requesting --> s_RUNNING_asking_backingOff : onError [mayRetry]')
    expect(text).toMatch(/any_s_\w+ --> s_CANCELLED : CANCEL/)
    expect(text).toContain('any_s_RUNNING --> s_RUNNING_whereItWas : RESUMED else')
    expect(text).toContain('    PAUSE → stays')
  })

  it('draws no line from a compound state or into one, because Mermaid draws it incorrectly', () => {
    const regions = ['preparing', 'asking', 'judging'].map((region) => `s_RUNNING_${region}`)
    const compound = ['s_RUNNING', ...regions, 's_WAITING_FOR_TOOL', 's_WAITING_FOR_INPUT']
    const ends = lines.flatMap((line) => /^ +(\S+) --> (\S+) :/.exec(line)?.slice(1) ?? [])
    expect(ends.length).toBeGreaterThan(50)
    expect(ends.filter((name) => compound.includes(name))).toEqual([])
  })

  it('distinguishes unusual names that look alike, and escapes syntax', () => {
    const text = toMermaid(toChart(workshop))
    expect(text).toContain('state "a state" as s_a_state\n')
    expect(text).toContain('as s_a_state_2\n')
    expect(text).toContain('[and(isOpen, not(is #34;late#34; & #60;old#62;))]')
    expect(text).toContain('    --')
  })

  it('draws a machine without states', () => {
    expect(toMermaid(toChart(single))).toBe('stateDiagram-v2\n')
  })
})
