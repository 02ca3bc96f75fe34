import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The whole core as an app's bundler would take it in; a built-in of Node fails the build. */
async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
    splitting: true,
    outdir: 'bundle',
  })
  return outputFiles.map(({ text }) => text).join('\n')
}

describe('the core entry', () => {
  it('bundles for the browser without any built-in of Node', async () => {
    const code = await bundle('src/index.ts')
    expect(code).toContain('WAITING_FOR_TOOL')
    expect(code).not.toMatch(/from\s*["']node:/)
    expect(code).not.toMatch(/require\(["'](?:node:)?(?:fs|crypto|http|path)["']\)/)
  })

  it('would not bundle if it had one', async () => {
    await expect(bundle('src/rehearsal/index.ts')).rejects.toThrow(/node:http/)
  })
})
