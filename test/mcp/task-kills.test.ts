import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileStore } from '../../src/stores/file/index.js'
import { buildMcpAgents } from '../stores/child.js'
import { taskForms, taskServer } from './task-server.js'
import { runsAll, sampledKinds } from '../support/extent.js'

const script = fileURLToPath(new URL('task-client.mjs', import.meta.url))
const built = buildMcpAgents()
const dir = mkdtempSync(join(tmpdir(), 'mcp-tasks-'))

afterAll(() => {
  rmSync(dir, { recursive: true, force: true })
  built.remove()
})

/** The kill points of a sample: at the answer with the call, or when the handle is stored. */
const sampledKills = { extension: [3], 'older form': [4] }

interface Rest {
  state: string
  output?: string
  reason?: string
}

/** Plays the session in a separate process that is killed at a record. Returns null if it was killed. */
function play(url: string, session: string, records: number | 'none'): Promise<Rest | null> {
  const args = [script, built.url, dir, url, session, String(records)]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, (error, text) => {
      if (error?.signal === 'SIGKILL') resolve(null)
      else if (error) reject(error)
      else resolve(JSON.parse(text) as Rest)
    })
  })
}

test.each(sampledKinds(taskForms))(
  'a process that is killed at any record of a run with a task, by the %s, repeats no call and loses no answer',
  async (form) => {
    const store = fileStore({ dir })
    const first = await taskServer(form)
    const name = form.replace(' ', '-')
    const whole = await play(first.url, name, 'none')
    expect(whole).toMatchObject({ state: 'COMPLETED', output: 'The answer of task-1.' })
    const { head = 0 } = store.get(name) ?? {}
    store.close()
    const table: string[] = []
    const kills = runsAll ? Array.from({ length: head }, (_, i) => i + 1) : sampledKills[form]
    for (const records of kills) {
      const { url, keys } = await taskServer(form)
      const session = `${name}-${records}`
      const killed = await play(url, session, records)
      const rest = await play(url, session, 'none')
      const came = rest?.output ?? rest?.reason
      table.push(`${records}: ${killed === null ? 'killed' : 'whole'}, ${keys.length} calls, ${came}`)
    }
    // Record 3 is the answer with the call. Until the handle is stored, it is unknown whether the call was
    // made, so a person is asked.
    expect(table).toEqual(
      kills.map((n) =>
        n === 3 ? '3: killed, 0 calls, approval' : `${n}: killed, 1 calls, The answer of task-1.`,
      ),
    )
    expect(head).toBe(6)
  },
  120_000,
)
