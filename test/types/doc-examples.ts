import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { entries, root } from './declarations.js'

/** An example in a doc comment. */
export interface Example {
  /** `src/core/tools/tool.ts 2`: the second example in that file. */
  place: string
  code: string
}

/** Every example in doc comments, after `@example` or between fences. */
export async function examples(): Promise<Example[]> {
  const files = (
    await Promise.all(
      ['src', 'machines', 'guards'].map(async (folder) =>
        (await readdir(join(root, folder), { recursive: true })).map((file) => posix.join(folder, file)),
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

export function examplesIn(source: string): string[] {
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

/** An export of an entry point. */
export interface PublicExport {
  entry: string
  name: string
  /** Whether it is only a type. */
  isType: boolean
  /** Its doc comment, or an empty string. */
  comment: string
  /** The file of its declaration. */
  file: string
}

export async function publicExports(): Promise<PublicExport[]> {
  const lists = await Promise.all(
    Object.entries(entries).map(async ([entry, file]) =>
      Promise.all((await namesOf(file)).map(async (one) => ({ entry, ...(await declared(one)) }))),
    ),
  )
  return lists.flat()
}

interface Named {
  name: string
  /** Its name at the declaration. */
  there: string
  file: string
  /** Exported as a type only, regardless of its declaration. */
  asType: boolean
}

const kinds = 'function\\*?|const|class|interface|type'

/** The exported names of a module, and the modules that they come from. */
async function namesOf(file: string): Promise<Named[]> {
  const source = (await readFile(join(root, file), 'utf8')).replaceAll(/\/\*[^]*?\*\//g, '')
  const passedOn = [...source.matchAll(/export (type )?\{([^}]*)\} from '([^']+)'/g)].flatMap(
    ([, types, list = '', from = '']) =>
      list
        .split(',')
        .map((each) => each.trim())
        .filter(Boolean)
        .map((each) => ({
          name: each.replace(/^(type )?(\w+ as )?/, ''),
          there: each.replace(/^type /, '').replace(/ as .*/, ''),
          file: posix.join(posix.dirname(file), from).replace(/\.js$/, '.ts'),
          asType: types !== undefined || each.startsWith('type '),
        })),
  )
  const own = [...source.matchAll(new RegExp(`^export (?:async )?(?:${kinds}) (\\w+)`, 'gm'))].map(
    ([, name = '']) => ({ name, there: name, file, asType: false }),
  )
  return [...passedOn, ...own]
}

/** The declaration of a name, across any number of re-exports. */
async function declared({ name, there, file, asType }: Named): Promise<Omit<PublicExport, 'entry'>> {
  const source = await readFile(join(root, file), 'utf8')
  const found = new RegExp(`^export (?:async )?(${kinds}) ${there}\\b`, 'm').exec(source)
  if (found) {
    const [, comment = ''] = /\/\*\*((?:(?!\*\/)[^])*)\*\/\s*$/.exec(source.slice(0, found.index)) ?? []
    return { name, isType: asType || /^(interface|type)$/.test(found[1] ?? ''), comment, file }
  }
  const from = (await namesOf(file)).find((one) => one.name === there)
  if (from === undefined || from.file === file) throw new Error(`${file} does not declare ${there}.`)
  return { ...(await declared({ ...from, asType: asType || from.asType })), name }
}

/** The methods of a public class or interface, with their doc comments. */
export async function methodsOf(name: string): Promise<{ name: string; comment: string }[]> {
  const one = (await publicExports()).find((each) => each.name === name)
  if (one === undefined) throw new Error(`No entry point exports ${name}.`)
  const [, body = ''] =
    new RegExp(`^export (?:class|interface) ${name}\\b[^]*?\\{\\n([^]*?)^\\}`, 'm').exec(
      await readFile(join(root, one.file), 'utf8'),
    ) ?? []
  const found = body.matchAll(
    /(?:^ {2}(\/\*\*(?:(?!\*\/)[^])*\*\/)\n)?^ {2}(?:get |async )?([a-z]\w*\$?)(?:<[^\n]*>)?\(/gm,
  )
  return Array.from(found, ([, comment = '', method = '']) => ({ name: method, comment }))
}

/** Imports of all entry-point exports, for use in examples. The first export wins for duplicate names. */
export async function importsOfAll({ types }: { types: boolean }): Promise<string> {
  const usedNames = new Set<string>()
  const all = (await publicExports()).filter(
    ({ name, isType }) => (types || !isType) && !usedNames.has(name) && usedNames.add(name),
  )
  return Object.keys(entries)
    .map((entry) => {
      const names = all
        .filter((one) => one.entry === entry)
        .map(({ name, isType }) => (isType ? `type ${name}` : name))
      return `import { ${names.join(', ')} } from '${entry}'`
    })
    .join('\n')
}

/** An example as a module. It is wrapped in a block, so that its names may shadow the names of `world`. */
export function moduleOf({ code }: Example, imports: string, world: string): string {
  const own = code.match(/^import .*$/gm) ?? []
  const body = code
    .replaceAll(/^import .*$/gm, '')
    // The compiler does not understand "And so on".
    .replaceAll(/([{([,]\s*)…/g, '$1...andSoOn')
    .replaceAll(/(?<=\[ |\{ |\( )…/g, 'andSoOn')
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
