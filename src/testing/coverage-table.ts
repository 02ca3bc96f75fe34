import { expectArgument, objectRule } from '../core/base/expect-argument.js'
import type { Coverage } from './coverage.js'

/**
 * The coverage as text: one line of totals, a row a transition, then what is not covered and why.
 *
 * ```text
 * agent: 82 of 82 transitions, 40 of 40 states, by 34 paths with 148 events
 * ```
 *
 * @example
 * const { coverage } = generatePaths(machine, { alphabet })
 * console.log(formatCoverage(coverage)) // what was never taken, and why
 */
export function formatCoverage(coverage: Coverage): string {
  expectArgument(
    'formatCoverage(coverage)',
    coverage,
    objectRule(['transitions', 'states'], 'the coverage that generatePaths(…) returned'),
  )
  const { transitions, states, pairs } = coverage
  const missed = transitions.filter(({ taken }) => taken === 0)
  const unreachable = states.filter(({ reached }) => !reached)
  const totals = [
    `${transitions.length - missed.length} of ${transitions.length} transitions`,
    `${states.length - unreachable.length} of ${states.length} states`,
    ...(pairs ? [`${pairs.filter(({ taken }) => taken > 0).length} of ${pairs.length} reachable pairs`] : []),
  ].join(', ')
  return [
    `${coverage.machine}: ${totals}, by ${coverage.paths} paths with ${coverage.events} events`,
    `explored ${coverage.explored.states} states and ${coverage.explored.events} events from ${coverage.explored.inputs.join(', ')}`,
    '',
    ...formatRows([
      ['taken', 'transition'],
      ...transitions.map(({ taken, id }) => [taken === 0 ? '-' : String(taken), id]),
    ]),
    ...formatSection(
      'Not covered',
      missed.map(({ id, uncovered }) => `${id}\n    ${uncovered?.message ?? ''}`),
    ),
    ...formatSection(
      'Unreachable states',
      unreachable.map(({ id }) => id),
    ),
    ...formatSection(
      'Pairs',
      (pairs ?? []).map(({ first, second, taken }) => `${taken} × ${first}\n    then ${second}`),
    ),
    '',
  ].join('\n')
}

function formatSection(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title} (${lines.length}):`, ...lines.map((line) => `  ${line}`)]
}

function formatRows(table: readonly string[][]): string[] {
  const width = Math.max(...table.map(([first = '']) => first.length))
  return table.map(([first = '', second = '']) => `${first.padStart(width)}  ${second}`)
}
