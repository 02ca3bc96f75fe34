// For workerd: responds to a request with the model's address, with the result of each feature.
import { DurableObject } from 'cloudflare:workers'
import { durableObjectStore } from 'statewright/stores/durable-object'
import { checkStore } from 'statewright/testing'
import example from './durable-object.mjs'
import { playAll, playSession } from './features.mjs'

export { SessionObject } from './durable-object.mjs'

/** A Durable Object that provides the storage for the features. */
export class StoreObject extends DurableObject {
  say(url, words) {
    return playSession(url, durableObjectStore({ storage: this.ctx.storage }), words)
  }

  /** The next call creates a new instance. */
  end() {
    this.ctx.abort('It ends.')
  }

  /** Each check has empty storage. */
  async check() {
    const { storage } = this.ctx
    let last = ''
    const { checks, broken } = await checkStore(async ({ place, now }) => {
      if (place !== last) await storage.deleteAll()
      last = place
      return durableObjectStore({ storage, now })
    })
    return { broken, kept: checks.filter(({ outcome }) => outcome === 'kept').length }
  }
}

/** The state of a sleeping session after it wakes. After half a minute, returns the current state. */
async function settles(ask) {
  for (let looks = 1; ; looks += 1) {
    const { state } = await ask()
    if (!['PAUSED', 'RUNNING'].includes(state) || looks === 300) return state
    await scheduler.wait(100)
  }
}

/** The features that use Durable Objects. */
function listObjectFeatures(url, env, expect) {
  const object = (name) => env.STORES.get(env.STORES.idFromName(name))
  return {
    'session in a Durable Object': async () => {
      await object('kept').say(url, 'My name is Ann.')
      await object('kept')
        .end()
        .catch(() => undefined)
      const { state, messages } = await object('kept').say(url, 'Who am I?')
      expect(state === 'COMPLETED' && messages === 4, `${state} with ${messages} messages`)
    },
    'store rules in a Durable Object': async () => {
      const { broken, kept: passed } = await object('checked').check()
      expect(broken.length === 0 && passed > 40, `${passed} kept; ${broken.join('; ')}`)
    },
    'sleep and wake by alarm in Durable Objects': async () => {
      const ask = async (order, init) =>
        (await example.fetch(new Request(`http://localhost/order-${order}`, init), env)).json()
      const states = await Promise.all(
        Array.from({ length: 20 }, async (_, order) => {
          const first = await ask(order, { method: 'POST', body: 'Send the goods once they are paid.' })
          expect(first.state === 'PAUSED' && first.wakeAt > 0, JSON.stringify(first))
          return settles(() => ask(order))
        }),
      )
      const awake = states.filter((state) => state === 'COMPLETED').length
      expect(awake === states.length, `${awake} of ${states.length} are awake: ${states.join(', ')}`)
    },
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url).searchParams.get('model')
    return Response.json(await playAll(url, { objects: (expect) => listObjectFeatures(url, env, expect) }))
  },
}
