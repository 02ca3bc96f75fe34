import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { loadOnce } from '../core/base/platform.js'
import { type Chart, type ChartState as State, flattenStates, toChart } from '../diagram/chart.js'
import { toOverview } from '../diagram/overview.js'
import { drawOverview } from '../diagram/overview-svg.js'
import { packageRoot } from './studio-page.js'

export type ChartView = Awaited<ReturnType<typeof drawMachine>> & {
  /** The address of Stately's editor, and the machine in its format. */
  editor?: { url: string; machine: object; withContext: boolean }
}
export type ChartState = ChartView['states'][number]
export type ChartTransition = ChartView['transitions'][number]

export function drawChart(machine: AnyStateMachine = agentMachine): Promise<ChartView> {
  return machine === agentMachine ? drawAgentChart() : drawMachine(machine)
}

const drawAgentChart = loadOnce(() => drawMachine(agentMachine))

async function drawMachine(machine: AnyStateMachine) {
  const chart = toDrawnChart(machine)
  const compound = flattenStates(chart.root).filter(({ states }) => states.length > 0)
  const sheets = compound.map((state) =>
    state === chart.root
      ? { id: '', title: chart.id, svg: drawOverview(chart) }
      : { id: state.id, title: state.id, svg: drawOverview(chart, undefined, state.id) },
  )
  const tested = machine === agentMachine ? await readTestedIds() : null
  const states = flattenStates(chart.root).slice(1)
  /** Whether generated tests cover it. Null if unknown. */
  const isTested = (id: string): boolean | null => tested && tested.has(id)
  const words = mapWords(chart)
  return {
    id: chart.id,
    description: chart.root.description,
    states: states.map(({ id, description, type }) => ({
      path: id,
      description,
      type,
      isTested: isTested(id),
    })),
    transitions: flattenStates(chart.root).flatMap(({ description, transitions }) =>
      transitions.map(({ id, source, targets, on, when, actions }) => ({
        id,
        source,
        target: targets[0] ?? null,
        event: on,
        guard: when ?? '',
        actions,
        description,
        /** The label of a transition from one outer state to another. Empty for other transitions. */
        words: words.get(id) ?? '',
        isTested: isTested(id),
      })),
    ),
    /** SVG with `data-state` and `data-transition`. The overview comes first, then one sheet per state. */
    sheets,
  }
}

/** A machine without states is drawn as one state, which has its transitions. */
function toDrawnChart(machine: AnyStateMachine): Chart {
  const { id, root } = toChart(machine)
  if (root.states.length > 0) return { id, root }
  // A dot would separate the parts of a path.
  const name = id.replaceAll('.', ' ')
  const transitions = root.transitions.map((one) => ({
    ...one,
    source: name,
    targets: one.targets.map(() => name),
  }))
  const only: State = { ...root, id: name, key: name, transitions }
  return { id, root: { ...root, initial: [name], states: [only], transitions: [] } }
}

/** The states and transitions that generated tests cover: `npm run generate` writes the file. Null if unknown. */
async function readTestedIds(): Promise<ReadonlySet<string> | null> {
  const [file] = ['visualizations', 'dist/src/studio/chart']
    .map((folder) => join(packageRoot, folder, 'agent.coverage.json'))
    .filter(existsSync)
  if (file === undefined) return null
  const { states, transitions } = JSON.parse(await readFile(file, 'utf8')) as {
    states: { id: string; reached: boolean }[]
    transitions: { id: string; count: number }[]
  }
  const covered = transitions.filter((one) => one.count > 0)
  return new Set([...states.filter(({ reached }) => reached), ...covered].map(({ id }) => id))
}

function mapWords(chart: Chart): ReadonlyMap<string, string> {
  const { anywhere, states } = toOverview(chart)
  const ways = [...anywhere, ...states.flatMap(({ transitions }) => transitions)]
  return new Map(
    ways.flatMap(({ events, causes }) =>
      events.flatMap((event, at) => (causes[at] ?? []).map((id) => [id, event] as const)),
    ),
  )
}
