import { z } from 'zod'
import { type Chart, flattenStates } from './chart.js'
import { DiagramError } from './errors.js'

/** How often each transition was taken, by its id. */
export type TransitionCounts = ReadonlyMap<string, number>

/** The part of a `Coverage` that a diagram shows. */
const coverageSchema = z.object({
  machine: z.string(),
  transitions: z.array(z.object({ id: z.string(), taken: z.int().nonnegative() })),
})

/**
 * Reads the `coverage` of `generatePaths`, as JSON gave it.
 *
 * @example const svg = await toSvg(chart, { counts: readTransitionCounts(generatePaths(machine, { alphabet }).coverage, chart) })
 * @throws {DiagramError} `bad_coverage`: another shape, another machine, or transitions that the machine has not
 */
export function readTransitionCounts(value: unknown, chart: Chart): TransitionCounts {
  const parsed = coverageSchema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw badCoverageError(`at '${issue?.path.join('.') ?? ''}': ${issue?.message ?? 'another shape'}`)
  }
  const { machine, transitions } = parsed.data
  if (machine !== chart.id) throw badCoverageError(`it is of the machine '${machine}', not of '${chart.id}'`)
  const ids = new Set(flattenStates(chart.root).flatMap((state) => state.transitions.map(({ id }) => id)))
  const stale = transitions.find(({ id }) => !ids.has(id))
  if (stale) throw badCoverageError(`the machine has no transition '${stale.id}'`)
  return new Map(transitions.map(({ id, taken }) => [id, taken]))
}

function badCoverageError(why: string): DiagramError {
  return new DiagramError(
    'bad_coverage',
    `This is no coverage of the machine: ${why}. Write it anew with 'statewright paths', or with generatePaths().`,
    'coverage',
  )
}
