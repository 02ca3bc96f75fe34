// Helpers for scripts that use the sessions of browser tests in a studio.
import { mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Bundles and imports a module of the sources. */
export async function importSource(entry) {
  // Inside the project, so that packages are found.
  const folder = mkdtempSync(`${root}node_modules/.source-`)
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const outfile = `${folder}/source.mjs`
  await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  })
  return import(outfile)
}

/** Plays the stage of the tests. `get` reads from its studio. */
export async function openStage() {
  const { openStage } = await importSource('test/browser/studio/stage.ts')
  const stage = await openStage()
  const address = stage.url
  const { headers } = await fetch(address, { redirect: 'manual' })
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';')
  const base = new URL(`.${headers.get('location')}`, address).href.replace(/\/$/, '')
  const get = async (path) => (await fetch(base + path, { headers: { cookie } })).json()
  return Object.assign(Object.create(stage), { get })
}
