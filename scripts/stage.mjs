// Scripts that play what tests play: the sessions that pictures are made of are those of the browser tests, in a studio.
import { mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

/** A module of the sources with what it imports, as the compiler would leave it. */
export async function importSource(entry) {
  // Inside the project: packages are found from there.
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

/** Has the stage of the tests played, and a `get` for what its studio tells. */
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
