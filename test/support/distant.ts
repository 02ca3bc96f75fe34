import type { SessionStore } from '../../src/core/sessions/store/store.js'

/** A store with network latency. `wait` delays the request, `back` delays the response. */
export function distant(
  near: SessionStore,
  wait: () => Promise<void> = () => new Promise((resolve) => setImmediate(resolve)),
  back?: () => Promise<void>,
): SessionStore {
  const later = <Value>(ask: () => Value | Promise<Value>): Promise<Value> => {
    const pending = wait().then(ask)
    return back ? pending.finally(back) : pending
  }
  const { inbox, timers } = near
  return {
    acquire: (...args) => later(() => near.acquire(...args)),
    renew: (...args) => later(() => near.renew(...args)),
    release: (...args) => later(() => near.release(...args)),
    append: (...args) => later(() => near.append(...args)),
    read: (...args) => later(() => near.read(...args)),
    get: (...args) => later(() => near.get(...args)),
    list: (...args) => later(() => near.list(...args)),
    delete: (...args) => later(() => near.delete(...args)),
    close: () => later(() => near.close()),
    ...(near.setTitle && { setTitle: (...args) => later(() => near.setTitle?.(...args) ?? false) }),
    ...(near.setMark && { setMark: (...args) => later(() => near.setMark?.(...args) ?? false) }),
    ...(timers && {
      timers: {
        get: (...args) => later(() => timers.get(...args)),
        set: (...args) => later(() => timers.set(...args)),
        listDue: (...args) => later(() => timers.listDue(...args)),
        list: (...args) => later(() => timers.list(...args)),
        move: (...args) => later(() => timers.move(...args)),
      },
    }),
    ...(inbox && {
      inbox: {
        put: (...args) => later(() => inbox.put(...args)),
        read: (...args) => later(() => inbox.read(...args)),
        remove: (...args) => later(() => inbox.remove(...args)),
      },
    }),
  }
}
