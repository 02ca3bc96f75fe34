import { readFileSync } from 'node:fs'
import { agentMachine, presets } from '../../src/index.js'
import { agentLook, toChart, toSvg } from '../../src/diagram/index.js'
import { toneColors } from '../../src/diagram/look.js'
import { defaultConfig } from '../../src/core/config/defaults.js'
import { turnSchema } from '../../src/rehearsal/turn-schema.js'
import { documents, root } from './snippets.js'

/** The row cells of the tables under a heading. */
function rowsUnder(document: string, heading: string): string[][] {
  const [, after = ''] = `\n${readFileSync(root + document, 'utf8')}`.split(`\n${heading}\n`)
  const [section = ''] = after.split(/\n#+ /)
  const rows = section.split('\n').filter((line) => line.startsWith('| '))
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

const codesIn = (cell: string): string[] => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code = '']) => code)

function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value)
}

/** Evaluates `60 000` and `'error'`. */
function read(text: string): unknown {
  const plain = text
    .replaceAll(/(\d) (?=\d{3})/g, '$1')
    .replaceAll("'", '"')
    .replace(/ = off$/, '')
  try {
    return JSON.parse(plain)
  } catch {
    return plain
  }
}

describe('the table of the configuration', () => {
  const rows = rowsUnder('docs/configuration.md', '## The keys').filter(
    ([key = '']) => key.includes('`') && !key.includes('*'),
  )
  const pairs = rows.flatMap(([keys = '', cell = '']) => {
    const names = codesIn(keys)
    const section = names[0]?.includes('.') ? `${names[0].split('.')[0]}.` : ''
    const values = cell.replaceAll('`', '').split(/, (?=\d|\D)/)
    return names.map((name, i) => {
      const path = i === 0 || section === '' ? name : `${section}${name}`
      return [path, read(values[i] ?? values.at(-1) ?? '')] as const
    })
  })

  it.each(pairs)('%s defaults to %j', (path, value) => {
    expect(at(defaultConfig, path)).toEqual(value)
  })

  it('has every key except those of guards', () => {
    const { guardrails: _guardrails, ...sections } = defaultConfig
    const keys = Object.entries(sections).flatMap(([name, section]) =>
      typeof section === 'object' ? Object.keys(section).map((key) => `${name}.${key}`) : [name],
    )
    const mentioned = rows.flat().flatMap(codesIn)
    const known = new Set([...pairs.map(([path]) => path), ...mentioned])
    expect(keys.filter((key) => !known.has(key))).toEqual([])
  })
})

test('the table of turns has exactly the keys', () => {
  const keys = rowsUnder('docs/rehearsals.md', '# Rehearsals').flatMap(([cell = '']) => codesIn(cell))
  expect(keys.toSorted()).toEqual(Object.keys(turnSchema.shape).toSorted())
})

describe('the tables of the presets', () => {
  const named = Object.entries({
    aar: ['aar'],
    'openhuman`, `presets.openhumanTask': ['openhuman', 'openhumanTask'],
    llamaStack: ['llamaStack'],
    strands: ['strands'],
  })

  it.each(named)('lists the settings of %s', (heading, names) => {
    const rows = rowsUnder('docs/presets.md', `### \`presets.${heading}\``).filter(([key = '']) =>
      key.includes('`'),
    )
    expect(rows).not.toEqual([])
    for (const [key = '', value = ''] of rows) {
      const [path = ''] = codesIn(key)
      const preset = presets[names[0] as keyof typeof presets]
      if (path === 'onHalt') continue
      const pairs = codesIn(value).flatMap((code) => {
        const [, name, text = ''] = /^(\w+): (.+)$/.exec(code) ?? []
        return name === undefined ? [] : [[`${path}.${name}`, read(text)] as const]
      })
      for (const [place, expected] of pairs) expect([place, at(preset, place)]).toEqual([place, expected])
      const [number] = /^`?(\d+|null)`?(?=;|$)/.exec(value)?.slice(1) ?? []
      if (number !== undefined) expect([path, at(preset, path)]).toEqual([path, read(number)])
      if (value === 'off') expect(at(preset, path)).toBeNull()
      if (value === 'on' || value === 'the defaults') expect(at(preset, path)).toMatchObject({})
    }
  })

  it('lists their common settings', () => {
    const four = ['repeatedCall', 'repeatedOutput', 'failing', 'terminalDelegation'] as const
    for (const guard of four) expect(presets.openhuman.guardrails?.[guard]).toMatchObject({ onHalt: 'pause' })
    expect(presets.openhumanTask.limits?.maxSteps).toBe(200)
    const off = ['repeatedOutput', 'cycle', 'failing', 'terminalDelegation'] as const
    for (const guard of off) {
      expect(presets.aar.guardrails?.[guard]).toBeNull()
      expect(presets.llamaStack.guardrails?.[guard]).toBeNull()
      expect(presets.strands.guardrails?.[guard]).toBeNull()
    }
    expect(presets.llamaStack.guardrails.repeatedCall).toBeNull()
    expect(presets.strands.guardrails.repeatedCall).toBeNull()
  })
})

test('final states have the colors that the guide to the pictures names', async () => {
  const tones = {
    success: ['COMPLETED'],
    limit: ['TIMED_OUT', 'MAX_STEPS', 'BUDGET_EXCEEDED'],
    error: ['ERROR', 'BLOCKED'],
  }
  for (const [tone, states] of Object.entries(tones)) {
    for (const state of states) expect([state, agentLook.tones[state]]).toEqual([state, tone])
  }
  const svg = await toSvg(toChart(agentMachine))
  for (const tone of ['success', 'limit', 'error'] as const) expect(svg).toContain(toneColors[tone].fill)
})

test('each row of a table is on one line', () => {
  const broken = documents.flatMap((name) =>
    readFileSync(root + name, 'utf8')
      .replaceAll(/^```.*?^```$/gms, '')
      .split('\n')
      .filter((line) => line.startsWith('|') && !line.endsWith('|')),
  )
  expect(broken).toEqual([])
})
