import { expectArgument, listRule } from '../core/base/values.js'
import { describeState } from '../core/chart/state-labels.js'
import type { AnyMachineSnapshot } from 'xstate'
import type { Chart, ChartState } from './chart.js'
import type { Look } from './look.js'

interface Way {
  steps: readonly { label: string; state: Pick<AnyMachineSnapshot, 'value' | 'status'> }[]
}

export interface ComparedWays {
  before: Way
  after: Way
}

/** Input for `toSvg` and `toMermaid`, returned by {@link toDifferenceChart}. */
export interface DrawnDifferences {
  chart: Chart
  /** Draws the traces of the new version in bold. */
  look: Look
}

/**
 * Combines the traces from `diffMachines` into one chart: their states, the events between them, and the
 * diverging targets before and after the change.
 *
 * @example
 * const { chart, look } = toDifferenceChart([])
 * await writeFile('difference.svg', await toSvg(chart, { look }))
 */
export function toDifferenceChart(differences: readonly ComparedWays[]): DrawnDifferences {
  const rule = listRule('a list of differences: diffMachines(…).differences')
  expectArgument('toDifferenceChart(differences)', differences, rule)
  const states = new Map<string, ChartState>()
  const mainPath: [string, string, string][] = []

  function getState({ value, status }: Way['steps'][number]['state']): ChartState {
    const id = describeState({ value, status })
    const known = states.get(id)
    if (known) return known
    const state = createState(id, status === 'done' ? 'final' : 'atomic')
    states.set(id, state)
    return state
  }

  function draw(from: ChartState, to: ChartState, on: string): void {
    const id = `${from.id}: ${on} → ${to.id}`
    if (from.transitions.some((known) => known.id === id)) return
    const transition = { id, source: from.id, event: on, on, branch: 0, guard: null, when: null }
    from.transitions.push({ ...transition, targets: [to.id], actions: [], reenter: false })
  }

  const starts = createState('(start)', 'atomic')
  for (const { before, after } of differences) {
    let at = starts
    for (const { label, state } of before.steps.slice(0, -1)) {
      const to = getState(state)
      draw(at, to, label)
      at = to
    }
    for (const [side, way] of Object.entries({ before, after })) {
      const last = way.steps.at(-1)
      if (!last) continue
      const on = `${side}: ${last.label}`
      const to = getState(last.state)
      draw(at, to, on)
      if (side === 'after') mainPath.push([at.id, to.id, on])
    }
  }
  const root = createState('(root)', 'compound')
  root.states = [starts, ...states.values()]
  root.initial = [starts.id]
  return { chart: { id: 'difference', root: { ...root, key: 'difference' } }, look: { tones: {}, mainPath } }
}

function createState(id: string, type: ChartState['type']): ChartState {
  const own = { id, key: id, type, description: '' }
  return { ...own, entry: [], exit: [], invokes: [], initial: [], states: [], transitions: [] }
}
