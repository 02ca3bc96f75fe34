import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Complaint, compile, entries, root } from './compile.js'

interface Example {
  place: string
  code: string
}

/** Every example of a doc comment, after `@example` or between fences. */
async function examples(): Promise<Example[]> {
  const files = (
    await Promise.all(
      ['src', 'machines', 'guards'].map(async (folder) =>
        (await readdir(join(root, folder), { recursive: true })).map((file) => join(folder, file)),
      ),
    )
  ).flat()
  const found = await Promise.all(
    files
      .filter((file) => file.endsWith('.ts'))
      .map(async (file) =>
        examplesIn(await readFile(join(root, file), 'utf8')).map((code, n) => ({
          place: `${file} ${n + 1}`,
          code,
        })),
      ),
  )
  return found.flat().sort((a, b) => a.place.localeCompare(b.place))
}

function examplesIn(source: string): string[] {
  const comments = source.match(/\/\*\*[^]*?\*\//g) ?? []
  return comments.flatMap((comment) => {
    const text = comment.replace(/^\/\*\*|\*\/$/g, '').replaceAll(/^ *\* ?/gm, '')
    const fenced = [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, code = '']) => code)
    const tagged = text
      .replaceAll(/^```[^]*?^```/gm, '')
      .split(/^(?=@\w)| (?=@example )/m)
      .filter((part) => part.startsWith('@example'))
      .map((part) => part.replace('@example', ''))
    return [...fenced, ...tagged]
  })
}

/** What the entry points export, so that an example may use all of it. Of two of one name, the first. */
async function exportsOf(): Promise<string> {
  const taken = new Set<string>()
  const lines = await Promise.all(
    Object.entries(entries).map(async ([name, file]) => {
      const source = await readFile(join(root, file), 'utf8')
      const lists = [...source.matchAll(/export (type )?\{([^}]*)\} from/g)]
      const names = lists.flatMap(([, type = '', list = '']) =>
        list
          .split(',')
          .map((each) => each.trim())
          .filter(Boolean)
          .map((each) => (type && !each.startsWith('type ') ? `type ${each}` : each)),
      )
      return { name, names }
    }),
  )
  return lines
    .map(({ name, names }) => {
      const own = names.filter((each) => {
        const bare = each.replace('type ', '')
        return !taken.has(bare) && taken.add(bare)
      })
      return `import { ${own.join(', ')} } from '${name}'`
    })
    .join('\n')
}

/** What examples speak of without saying what it is. */
const world = `
import { createActor } from 'xstate'
import * as z from 'zod'
declare const model: ModelProvider
const add = defineTool({ name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), execute: ({ a }) => a })
const agent = createAgent({ model, tools: [add] })
const run = agent.run('Go.')
const result = await run.result
declare const signal: AbortSignal
declare const controller: AbortController
`

/** An example as a module: a block, so that its names may be those of the world. */
function moduleOf({ code }: Example, imports: string): string {
  const own = code.match(/^import .*$/gm) ?? []
  const body = code
    .replaceAll(/^import .*$/gm, '')
    // "And so on" is nothing that the compiler knows.
    .replaceAll(/([{([,]\s*)…/g, '$1...andSoOn')
    .replaceAll('…', 'andSoOn')
  const bound = own.flatMap(
    (line) =>
      /\{([^}]*)\}/
        .exec(line)?.[1]
        ?.split(',')
        .map((name) => name.trim()) ?? [],
  )
  const rest = imports.replaceAll(/(?<=[{,] )(?:type )?(\w+)(?:, )?/g, (all, name: string) =>
    bound.includes(name) ? '' : all,
  )
  return `${rest}\n${own.join('\n')}\n${world}\n{\n${body}\n}\nexport {}\n`
}

/** Names that an example leaves to its reader, and parameters that get their types where it is put. */
const isLeftOpen = ({ code }: Complaint): boolean =>
  /^TS(2304|2552|18004|7006|7031|7005|7034|2307|2695|6133)$/.test(code)

test('examples of doc comments are what the types take', async () => {
  const all = await examples()
  expect(all.length).toBeGreaterThan(60)
  const imports = await exportsOf()
  const said = await compile(all.map((example) => moduleOf(example, imports)))
  const wrong = all.flatMap(({ place, code }, index) => {
    const complaints = (said[index] ?? []).filter((complaint) => !isLeftOpen(complaint))
    return complaints.length === 0 ? [] : [{ place, code, complaints }]
  })
  expect(wrong).toEqual([])
}, 120_000)
