// The sessions that pictures are made of: those that the browser tests play, in a studio.
import { mkdtemp, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Has the stage of the tests played, and a `get` for what its studio tells. */
export async function openStage() {
  // Inside the project: packages are found from there.
  const folder = await mkdtemp(`${root}node_modules/.stage-`)
  const outfile = `${folder}/stage.mjs`
  await build({
    absWorkingDir: root,
    entryPoints: ['test/browser/studio/stage.ts'],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'error',
  })
  const { openStage } = await import(outfile)
  const stage = await openStage()
  await rm(folder, { recursive: true })
  const { headers } = await fetch(stage.url, { redirect: 'manual' })
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';')
  const origin = new URL(stage.url).origin
  return { ...stage, get: async (path) => (await fetch(origin + path, { headers: { cookie } })).json() }
}
