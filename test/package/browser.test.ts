import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Bundle {
  /** All modules, including lazily loaded ones. */
  code: string
  /** The modules that load before the first line runs. */
  first: string
  /** External packages, by the kind of import. */
  packages: { first: string[]; later: string[] }
}

/** An app's code as its bundler would include it. A Node built-in fails the build. */
async function bundle(
  contents: string,
  options: { packages?: 'external'; external?: string[] } = {},
): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    stdin: { contents, resolveDir: root, sourcefile: 'app.js' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
    splitting: true,
    minify: true,
    metafile: true,
    outdir: 'bundle',
    ...options,
  })
  const texts = new Map(outputFiles.map(({ path, text }) => [path.slice(root.length), text]))
  const first = reachedAtOnce(metafile, 'bundle/stdin.js')
  const outside = (files: Iterable<string>, kinds: readonly string[]) => {
    const imports = [...files].flatMap((file) => metafile.outputs[file]?.imports ?? [])
    const packages = imports.filter((each) => each.external && kinds.includes(each.kind))
    return new Set(packages.map(({ path }) => path))
  }
  const atOnce = outside(first, ['import-statement'])
  const everywhere = outside(texts.keys(), ['import-statement', 'dynamic-import'])
  return {
    code: [...texts.values()].join('\n'),
    first: [...first].map((file) => texts.get(file) ?? '').join('\n'),
    packages: {
      first: [...atOnce].toSorted(),
      later: [...everywhere].filter((path) => !atOnce.has(path)).toSorted(),
    },
  }
}

function reachedAtOnce({ outputs }: Metafile, entry: string): Set<string> {
  const reached = new Set([entry])
  for (const file of reached) {
    for (const { path, kind, external } of outputs[file]?.imports ?? []) {
      if (kind === 'import-statement' && external !== true) reached.add(path)
    }
  }
  return reached
}

const app = `import { createAgent, defineTool, openaiChat } from './src/index.ts'
console.log(createAgent, defineTool, openaiChat)`

/** Packages that an app already has, or loads itself. */
const shared = ['xstate', 'zod', 'rxjs', 'rxjs/*', 'openai']

describe('the core entry', () => {
  it('bundles for the browser without any built-in of Node', async () => {
    const { code } = await bundle("export * from './src/index.ts'")
    expect(code).toContain('WAITING_FOR_TOOL')
    expect(code).not.toMatch(/from\s*["']node:/)
    expect(code).not.toMatch(/require\(["'](?:node:)?(?:fs|crypto|http|path)["']\)/)
  })

  it('would not bundle if it had one', async () => {
    await expect(bundle("export * from './src/rehearsal/index.ts'")).rejects.toThrow(/node:http/)
  })

  it('requires two packages to run, and others only for features that use them', async () => {
    const { packages } = await bundle("export * from './src/index.ts'", { packages: 'external' })
    expect(packages).toEqual({
      first: ['rxjs/internal/Observable', 'xstate'],
      later: [
        '@cfworker/json-schema',
        '@pydantic/genai-prices',
        'eventsource-parser',
        'openai',
        'partial-json',
        're2js',
        'zod',
      ],
    })
  })

  // The store, shields, user guards, sub-agents, `context.window`, shared budgets and the classification of failures
  // load on first use.
  it('is at most 131 kB gzipped in an app that has these packages, without the price catalogue', async () => {
    const { first, code } = await bundle(app, { external: shared })
    expect(gzipSync(first).length).toBeLessThanOrEqual(131_000)
    // Only the price table contains this word. The table loads lazily.
    expect(first).not.toContain('input_mtok')
    expect(code).toContain('input_mtok')
  })
})

describe('statewright/agui', () => {
  it('needs the core and the address parser, and no built-in of Node', async () => {
    const { packages } = await bundle("export * from './src/agui/index.ts'", { packages: 'external' })
    expect(packages).toEqual({ first: ['ipaddr.js'], later: [] })
  })
})

describe('statewright/skills without Node', () => {
  it('needs no built-in of Node, and no package that parses front matter', async () => {
    const { code, packages } = await bundle("export * from './src/skills/elsewhere.ts'", {
      packages: 'external',
    })
    expect(code).toContain('load_skill')
    expect(code).not.toContain('front matter')
    expect(packages.first).toEqual([])
  })
})

describe('the chat of a page', () => {
  it('needs no built-in of Node, and only the package that parses addresses', async () => {
    const { code, packages } = await bundle("export * from './src/ui/index.ts'", { packages: 'external' })
    expect(code).toContain('tool-approval-request')
    expect(packages).toEqual({ first: ['ipaddr.js'], later: [] })
  })
})

describe('statewright/ui/client', () => {
  it('needs no package and nothing of Node, and is at most 5 kB, gzipped', async () => {
    const { first, code, packages } = await bundle("export * from './src/ui/client/index.ts'", {
      packages: 'external',
    })
    expect(packages).toEqual({ first: [], later: [] })
    expect(code).toBe(first)
    expect(first).toContain('x-ai-sdk')
    expect(gzipSync(first).length).toBeLessThanOrEqual(5000)
  })
})
