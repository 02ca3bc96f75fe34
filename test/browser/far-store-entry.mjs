// Replaces `statewright/stores/file` (see far-store.mjs).
import { setTimeout } from 'node:timers/promises'
import { fileStore as nearStore } from 'statewright/stores/file'
import { postgresStore } from 'statewright/stores/postgres'

const { CHAT_STORE = '' } = process.env

const delay = (part) =>
  new Proxy(part, {
    get: (target, key) => {
      const value = target[key]
      if (typeof value === 'object' && value !== null) return delay(value)
      if (typeof value !== 'function') return value
      return async (...args) => {
        await setTimeout(5)
        return value.apply(target, args)
      }
    },
  })

export const fileStore = (options) =>
  CHAT_STORE === 'slow' ? delay(nearStore(options)) : postgresStore({ connectionString: CHAT_STORE })
