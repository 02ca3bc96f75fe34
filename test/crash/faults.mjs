import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { StoreError } from 'statewright'

/**
 * A one-time fault in a process: `{ on, when, session?, seq?, nth?, callId?, isTold?, act }`. `on` is a method
 * of the store, `put`, `look` or `remove` of its inbox, `set` or `move` of its timers, or `effect`, the work
 * of a tool. `when` is `before` or `after` it. The fault strikes at the append of record `seq` (with
 * `session`, only in that one; with `isTold`, of a record from the inbox), at the `nth` use in this process,
 * or at call `callId`. `act` is `kill` (default), `fill` the disk, or `refuse` like a store that has become
 * read-only.
 */
export function striker(fault, dir) {
  let count = 0
  let isOver = fault === undefined
  return (on, when, { callId, session, records = [] } = {}) => {
    if (isOver || on !== fault.on || when !== fault.when) return
    if (fault.session !== undefined && session !== fault.session) return
    if (fault.isTold && !records.some(isTold)) return
    count += 1
    if (fault.nth !== undefined && count !== fault.nth) return
    if (fault.seq !== undefined && !records.some(({ seq }) => seq === fault.seq)) return
    if (fault.callId !== undefined && callId !== fault.callId) return
    isOver = true
    acts[fault.act ?? 'kill'](dir)
  }
}

/** Whether the session received a record's content through its inbox. */
export const isTold = ({ data }) => JSON.parse(data).event?.inbox !== undefined

const acts = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  fill: (dir) => fillDisk(dir),
  refuse: () => {
    throw new StoreError('read_only', 'The store has become read-only. Make it writable again.')
  },
}

/**
 * A store with faults. A slow one answers later, so that code which does not wait for durable records has
 * time to act early.
 */
export function doomed(store, strike, isSlow = false) {
  const around =
    (on, work = store[on]) =>
    (...args) => {
      const place = on === 'append' ? { session: args[0].sessionId, records: args[1] } : {}
      strike(on, 'before', place)
      const value = work(...args)
      const finish = (answer) => {
        strike(on, 'after', place)
        return answer
      }
      return value instanceof Promise ? value.then(finish) : finish(value)
    }
  const methods = ['acquire', 'renew', 'release', 'append', 'read']
  const { put, read, remove } = store.inbox
  const inbox = {
    ...store.inbox,
    put: around('put', put),
    read: around('look', read),
    remove: around('remove', remove),
  }
  const { set, move } = store.timers
  const timers = { ...store.timers, set: around('set', set), move: around('move', move) }
  const struck = { ...store, inbox, timers, ...Object.fromEntries(methods.map((on) => [on, around(on)])) }
  return isSlow ? { ...struck, append: (...args) => wait(4).then(() => struck.append(...args)) } : struck
}

const ballast = (dir) => join(dir, 'ballast')

function fillDisk(dir) {
  for (const size of [65_536, 4096, 1]) {
    try {
      for (;;) writeFileSync(ballast(dir), Buffer.alloc(size), { flag: 'a' })
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error
    }
  }
}

export function freeDisk(dir) {
  rmSync(ballast(dir), { force: true })
}
