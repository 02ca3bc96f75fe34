import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentMachine } from '../../machines/agent.machine.js'
import { toChart, flattenStates } from '../../src/diagram/chart.js'

const film = readFileSync(join(import.meta.dirname, '../../visualizations/agent.film.svg'), 'utf8')

it('the film of the README is at most 1 MB, makes no requests, and runs no script', () => {
  expect(film.length).toBeLessThan(1_000_000)
  expect(film).not.toMatch(/<script|<foreignObject|href=|url\(|@import/)
})

it('shows a run that retries, asks a person, and completes, and stands still with reduced motion', () => {
  const shown = [...film.matchAll(/<text [^>]*font-size="16"[^>]*>([^<]+ › [^<]+|COMPLETED)<\/text>/g)].map(
    ([, path = '']) => path.replaceAll(' › ', '.'),
  )
  const known = new Set(flattenStates(toChart(agentMachine).root).map(({ id }) => id))
  expect(shown.filter((path) => !known.has(path))).toEqual([])
  for (const path of [
    'RUNNING.asking.backingOff',
    'WAITING_FOR_INPUT.approval',
    'WAITING_FOR_TOOL.executing',
    'COMPLETED',
  ])
    expect(shown).toContain(path)
  expect(film).toContain('@media (prefers-reduced-motion: reduce){.f{animation:none}}')
  // Without motion, only the end is visible.
  const [, still = ''] =
    film
      .split('</style>\n')
      .slice(1)
      .join('')
      .match(/([^]*)/) ?? []
  expect(still).toContain('It is paid.')
})
