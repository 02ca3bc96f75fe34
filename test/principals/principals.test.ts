import { jest } from '@jest/globals'
import { removeFolders } from '../cli/support.js'
import { exempt, found, studioAnswers } from './derived.js'
import { type Cell, nameOf, play, question } from './play.js'
import { ruleOf, rules } from './rules.js'
import { people, type Surface } from './surface.js'
import { agentSurfaces } from './surfaces/agent.js'
import { cliSurfaces } from './surfaces/cli.js'
import { hostSurfaces } from './surfaces/hosts.js'
import { mcpSurfaces } from './surfaces/mcp.js'
import { pageSurfaces } from './surfaces/pages.js'
import { studioSurfaces } from './surfaces/studio.js'
import { type AgentKind, agentKinds, closedStandings, type Standing, standings } from './world.js'

/**
 * Authorization to start, continue and answer work: every surface, used by each person on a session in every
 * state, with the rule for the outcome. `npm run suite -- principals` plays all cells, this test a sample.
 * `PRINCIPALS_ONLY` plays the cells whose names match it.
 */
const isWhole = process.env['STATEWRIGHT_PRINCIPALS'] === 'all'
const only = process.env['PRINCIPALS_ONLY']

jest.setTimeout(isWhole || only !== undefined ? 1_200_000 : 60_000)
afterAll(removeFolders)

const surfaces = [
  ...agentSurfaces,
  ...pageSurfaces,
  ...mcpSurfaces,
  ...studioSurfaces,
  ...hostSurfaces,
  ...cliSurfaces,
]

function agentsOf({ agents = 'any' }: Surface): readonly AgentKind[] {
  if (agents === 'none') return ['unnamed agent']
  return agents === 'any' ? agentKinds : agentKinds.filter((kind) => kind !== 'unnamed agent')
}

const standingsOf = ({ does }: Surface): readonly Standing[] =>
  does === 'answer' ? [...standings, ...closedStandings] : standings

const cells: Cell[] = surfaces.flatMap((surface) =>
  agentsOf(surface).flatMap((agent) =>
    (surface.knows === 'people' ? people : (['operator'] as const)).flatMap((who) =>
      standingsOf(surface).map((sessionState) => ({ surface, agent, who, sessionState })),
    ),
  ),
)

test('each surface that can start, continue or answer work has rows, or a reason to have none', async () => {
  const rows = new Set(surfaces.map(({ of }) => of))
  const known = await found()
  expect(known.filter((name) => !rows.has(name) && !exempt[name])).toEqual([])
  expect(known.filter((name) => rows.has(name) && exempt[name])).toEqual([])
  const answers = surfaces.flatMap(({ of, as }) => (of === 'studio.answers' ? [as?.split(',')[0]] : []))
  expect(new Set(answers)).toEqual(new Set(Object.keys(studioAnswers)))
  // A removed entry has no row and needs no reason.
  expect([...rows, ...Object.keys(exempt)].filter((name) => !known.includes(name))).toEqual([])
})

test('each cell has a rule, and each rule a cell', () => {
  const used = new Set(cells.map(ruleOf))
  expect(cells.filter((cell) => ruleOf(cell) === undefined).map(nameOf)).toEqual([])
  expect(rules.filter((rule) => !used.has(rule))).toEqual([])
})

test('the outcome of each cell matches its rule', async () => {
  const asks = await question()
  const broken: string[] = []
  for (const cell of cells.filter(isDue)) {
    const { comes, because } = ruleOf(cell) ?? {}
    const { came, faults } = await play(cell, asks)
    if (came !== comes) broken.push(`${nameOf(cell)}: ${came}, not ${comes}, because ${because}`)
    broken.push(...faults.map((fault) => `${nameOf(cell)}: ${fault}`))
  }
  expect(broken).toEqual([])
})

/** The sample has one cell per surface, with session states, agents and people in rotation. */
function isDue(cell: Cell): boolean {
  if (only !== undefined) return new RegExp(only).test(nameOf(cell))
  if (isWhole) return true
  const at = surfaces.indexOf(cell.surface)
  const all = standingsOf(cell.surface)
  const standsSo = all[at % all.length]
  const alike = cells.filter(
    ({ surface, sessionState }) => surface === cell.surface && sessionState === cell.sessionState,
  )
  return standsSo === cell.sessionState && alike[at % alike.length] === cell
}
