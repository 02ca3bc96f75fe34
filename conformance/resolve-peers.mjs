// The adapters' packages are those of bench/peers: one install, one lock file, for what peers cost and for what they do.
import * as module from 'node:module'

const peers = new URL('../bench/peers/', import.meta.url).href
const adapters = new URL('./adapters/', import.meta.url).href
const isBare = (specifier) => !/^(?:\.|\/|node:|file:)/.test(specifier)

/** Node 20 has no hooks of this kind; the adapters that it runs need none. */
export function resolvePeers() {
  module.registerHooks?.({
    resolve(specifier, context, next) {
      const isTheirs = context.parentURL?.startsWith(adapters) && isBare(specifier)
      return next(specifier, isTheirs ? { ...context, parentURL: peers } : context)
    },
  })
}
