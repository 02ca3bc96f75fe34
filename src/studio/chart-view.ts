import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { StatewrightError } from '../core/base/errors.js'
import { loadOnce } from '../core/base/platform.js'
import { toChart, type Chart, toOverviewSvg, toSvg, type ChartState as State } from '../diagram/index.js'
import type { SessionFold } from './session-fold.js'
import { packageRoot } from './studio-page.js'
import type { ChartView } from './protocol.js'

export interface DrawnChart {
  chart: Chart
  sheets: ChartView['sheets']
  /** Transitions that the generated tests take and states that they enter. Null if unknown. */
  tested: ReadonlySet<string> | null
}

/** Uses the packaged pictures for the agent machine and draws any other machine. */
export function drawChart(machine: AnyStateMachine = agentMachine): Promise<DrawnChart> {
  return machine === agentMachine ? drawAgentChart() : drawMachine(machine)
}

const drawAgentChart = loadOnce(() => drawMachine(agentMachine))

async function drawMachine(machine: AnyStateMachine): Promise<DrawnChart> {
  const chart = toChart(machine)
  const isOurs = machine === agentMachine
  const sheets = [{ id: '', title: chart.id, svg: await toOverviewSvg(chart) }]
  for (const { id, states } of listCompoundStates(chart.root)) {
    const hasRegions = states.some((state) => state.states.length > 0)
    // oxlint-disable-next-line no-await-in-loop -- one picture after the other
    const svg = await (hasRegions
      ? toOverviewSvg(chart, undefined, id)
      : isOurs
        ? readGenerated(`${id}.svg`)
        : tryDrawState(chart, id))
    if (svg !== null) sheets.push({ id, title: id, svg })
  }
  return { chart, sheets, tested: isOurs ? await readTestedIds() : null }
}

/** Returns null without the drawing package. The page then shows the outline. */
async function tryDrawState(chart: Chart, state: string): Promise<string | null> {
  try {
    return await toSvg(chart, { state })
  } catch (error) {
    if (error instanceof StatewrightError) return null
    throw error
  }
}

/** The files of `npm run generate` in a checkout, or their copies in the package. */
const generated = ['visualizations', 'dist/src/studio/chart'].map((folder) => join(packageRoot, folder))

async function readGenerated(name: string): Promise<string | null> {
  for (const folder of generated) {
    // oxlint-disable-next-line no-await-in-loop -- the second only where there is no first
    const text = await readFile(join(folder, `agent.${name}`), 'utf8').catch(() => null)
    if (text !== null) return text
  }
  return null
}

async function readTestedIds(): Promise<ReadonlySet<string> | null> {
  const text = await readGenerated('coverage.json')
  if (text === null) return null
  const { states, transitions } = JSON.parse(text) as {
    states: { id: string; reached: boolean }[]
    transitions: { id: string; taken: number }[]
  }
  const taken = transitions.filter((one) => one.taken > 0)
  return new Set([...states.filter(({ reached }) => reached), ...taken].map(({ id }) => id))
}

/** Compound states, outermost first. */
function listCompoundStates({ states }: State): State[] {
  return states
    .filter((state) => state.states.length > 0)
    .flatMap((state) => [state, ...listCompoundStates(state)])
}

export function createChartView({ chart, sheets, tested }: DrawnChart): ChartView {
  const states = flattenStates(chart.root).slice(1)
  const isTested = (id: string): boolean | null => tested && tested.has(id)
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
        isTested: isTested(id),
      })),
    ),
    sheets,
  }
}

function flattenStates(state: State): State[] {
  return [state, ...state.states.flatMap(flattenStates)]
}

export function countVisits(counts: Map<string, number>, { rows }: Pick<SessionFold, 'rows'>): void {
  const add = (id: string): void => void counts.set(id, (counts.get(id) ?? 0) + 1)
  for (const { from, to, taken } of rows) {
    for (const id of taken) add(id)
    const before = new Set(from.flatMap(listPathPrefixes))
    for (const path of new Set(to.flatMap(listPathPrefixes))) if (!before.has(path)) add(path)
  }
}

function listPathPrefixes(path: string): string[] {
  const parts = path.split('.')
  return parts.map((_, i) => parts.slice(0, i + 1).join('.'))
}
