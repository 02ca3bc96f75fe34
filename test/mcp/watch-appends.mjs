/** The store, which tells of each record that it has written: the session, and the number of the record. */
export function watchAppends(store, onAppended) {
  return Object.assign(Object.create(store), {
    append: (lease, records, ...more) => {
      const appended = store.append(lease, records, ...more)
      onAppended(lease.sessionId, records.at(-1).seq)
      return appended
    },
  })
}

/** Ends this process, as by kill -9. */
export function die() {
  process.kill(process.pid, 'SIGKILL')
}
