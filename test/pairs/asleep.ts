import { alarmPrefix } from '../../src/core/sessions/alarm.js'
import { type Agent, defineAgents, runSession, type SessionStore } from '../../src/index.js'
import { timed } from '../chaos/play.js'
import type { World } from '../chaos/world.js'

/**
 * Forks a sleeping run and deletes the forks: one never resumed, one about to wake. No data of them may
 * remain.
 */
export async function forkAsleep(agent: Agent, world: World, store: SessionStore): Promise<string[]> {
  const wait = <Value>(work: Value | Promise<Value>): Promise<Value> =>
    timed(world, Promise.resolve(work), true)
  const readAlarm = (id: string) => wait(store.timers?.get(`${alarmPrefix}${id}`) ?? null)
  const readOrigin = async () => JSON.stringify([await wait(agent.replay('chaos')), await readAlarm('chaos')])
  const { run, seq } = await wait(agent.replay('chaos'))
  if (run?.state !== 'PAUSED' || (run.wakeAt ?? 0) <= world.now()) return []
  const before = await readOrigin()
  const broken: string[] = []
  for (const isResumed of [false, true]) {
    const id = await wait(agent.fork('chaos', seq))
    if (isResumed) {
      await wait(runSession(defineAgents({ chaos: agent }), { session: id }))
      // A search for due sessions must wake it.
      await wait(agent.send(id, { type: 'steer', text: 'Wake up.' }))
    }
    const hasAlarm = (await readAlarm(id)) !== null
    if (store.timers && hasAlarm !== isResumed)
      broken.push(`a fork ${isResumed ? 'that is to wake has no' : 'that nobody has resumed has an'} alarm`)
    if (!(await wait(agent.deleteSession(id)))) broken.push('a fork was not there to be deleted')
    if ((await wait(store.get(id))) !== null) broken.push('a deleted fork is still there')
    if ((await readAlarm(id)) !== null) broken.push('a deleted fork has an alarm')
    // It throws if the session has a lease owner.
    await wait(store.release(await wait(store.acquire(id, { holder: 'the cell', ttlMs: 1000 }))))
  }
  return before === (await readOrigin()) ? broken : [...broken, 'a deleted fork has changed its origin']
}
