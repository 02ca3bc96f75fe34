import { readFileSync } from 'node:fs'
import { jest } from '@jest/globals'
import * as agui from '../../src/agui/index.js'
import * as aiSdk from '../../src/ai-sdk/index.js'
import * as core from '../../src/index.js'
import * as durable from '../../src/durable/index.js'
import * as fleet from '../../src/fleet/index.js'
import * as machine from '../../src/machine/index.js'
import * as mcp from '../../src/mcp/index.js'
import * as mcpServing from '../../src/mcp/server/index.js'
import * as memory from '../../src/memory/index.js'
import * as skills from '../../src/skills/index.js'
import * as cedar from '../../src/cedar/index.js'
import * as dbos from '../../src/dbos/index.js'
import * as opa from '../../src/opa/index.js'
import * as otel from '../../src/otel/index.js'
import * as restate from '../../src/restate/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import * as fileStore from '../../src/stores/file/index.js'
import * as stores from '../../src/stores/index.js'
import * as studio from '../../src/studio/index.js'
import * as testing from '../../src/testing/index.js'
import * as ui from '../../src/ui/index.js'
import * as uiClient from '../../src/ui/client/index.js'
import { runSnippet } from './run-snippet.js'
import { type Elsewhere, loose, type Scene, scenes } from './scenes.js'
import { root, snippets, snippetsOf } from './snippets.js'
import { typeErrors } from './type-check.js'
import { longTest, sampledRows } from '../support/extent.js'

jest.setTimeout(120_000)

const modules = {
  statewright: core,
  'statewright/agui': agui,
  'statewright/ai-sdk': aiSdk,
  'statewright/durable': durable,
  'statewright/fleet': fleet,
  'statewright/machine': machine,
  'statewright/mcp': mcp,
  'statewright/mcp/server': mcpServing,
  'statewright/memory': memory,
  'statewright/skills': skills,
  'statewright/cedar': cedar,
  'statewright/opa': opa,
  'statewright/dbos': dbos,
  'statewright/otel': otel,
  'statewright/restate': restate,
  'statewright/rehearsal': rehearsal,
  'statewright/stores': stores,
  'statewright/stores/file': fileStore,
  'statewright/studio': studio,
  'statewright/testing': testing,
  'statewright/ui': ui,
  'statewright/ui/client': uiClient,
}
for (const [name, module] of Object.entries(modules)) {
  jest.unstable_mockModule(name, () => ({ ...module }), { virtual: true })
}

const programs = snippets.filter(({ lang }) => lang === 'ts' || lang === 'js')
const played = programs.filter(({ id }) => !isElsewhere(scenes[id]))
const parts = programs.flatMap((snippet) => {
  const scene = scenes[snippet.id]
  return isElsewhere(scene) ? [{ ...snippet, ...scene }] : []
})

function isElsewhere(scene: Scene | Elsewhere | undefined): scene is Elsewhere {
  return scene !== undefined && 'because' in scene
}

test('every program of the documents has a scene, and every scene a program', () => {
  expect(Object.keys(scenes)).toEqual(programs.map(({ id }) => id))
})

test('every block names its language, from a fixed list', () => {
  expect(new Set(snippets.map(({ lang }) => lang))).toEqual(new Set(['js', 'sh', 'text', 'ts']))
})

longTest('every complete program compiles, with the reader’s own code', async () => {
  const whole = programs.filter(({ id }) => !parts.some((each) => each.id === id && isPart(each)))
  // A snippet with a type error, which proves that the compiler runs.
  const wrong = { id: 'wrong', lang: 'js', code: "createAgent({ model }).walk('Go.')" }
  const errors = Object.entries(await typeErrors([...whole, wrong])).flatMap(([id, messages]) =>
    messages
      .filter((line) => !loose[id]?.some((code) => line.includes(`error ${code}:`)))
      .map((line) => `${id}: ${line}`),
  )
  expect(errors).toEqual([expect.stringMatching(/^wrong: .*'walk' does not exist/)])
})

/** Parts of a machine, which are not complete programs. */
function isPart({ partOf, because }: Elsewhere): boolean {
  return partOf !== undefined || because === 'test/examples/sign-off.test.ts'
}

test.each(sampledRows(played))('$id runs', async (snippet) => {
  await runSnippet(snippet, scenes[snippet.id] as Scene, modules)
})

test.each(parts.filter(({ partOf }) => partOf !== undefined))(
  '$id is part of $partOf',
  ({ code, partOf = '' }) => {
    const lines = (text: string) => text.split('\n').map((line) => line.trim())
    const there = lines(readFileSync(root + partOf, 'utf8'))
    // In this order. Lines between them may be omitted.
    let at = -1
    for (const line of lines(code).filter(Boolean)) {
      const next = there.indexOf(line, at + 1)
      expect({ line, isThere: next > at }).toEqual({ line, isThere: true })
      at = next
    }
  },
)

test('headings and blocks are distinguished', () => {
  const markdown = '# A\n```ts\n# no heading\n```\n## B\n```js\n1\n```\n```js\n2\n```\n```\nplain\n```\n'
  expect(snippetsOf('x.md', markdown)).toEqual([
    { id: 'x.md › A', lang: 'ts', code: '# no heading\n' },
    { id: 'x.md › B', lang: 'js', code: '1\n' },
    { id: 'x.md › B (2)', lang: 'js', code: '2\n' },
  ])
})
