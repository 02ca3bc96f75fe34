// workerd: a request with the model's address is answered with what became of each feature.
import { DurableObject } from 'cloudflare:workers'
import { durableObjectStore } from 'statewright/stores/durable-object'
import { checkStore } from 'statewright/testing'
import example from './durable-object.mjs'
import { playAll, playSession } from './features.mjs'

export { SessionObject } from './durable-object.mjs'

/** An object whose storage is played with. */
export class StoreObject extends DurableObject {
  say(url, words) {
    return playSession(url, durableObjectStore({ storage: this.ctx.storage }), words)
  }

  /** The next call finds another instance. */
  end() {
    this.ctx.abort('It ends.')
  }

  /** Each check has a storage in which nothing is. */
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

/** What is played with Durable Objects. */
function listObjectFeatures(url, env, expect) {
  const object = (name) => env.STORES.get(env.STORES.idFromName(name))
  return {
    'keep a session in a Durable Object': async () => {
      await object('kept').say(url, 'My name is Ann.')
      await object('kept')
        .end()
        .catch(() => undefined)
      const { state, messages } = await object('kept').say(url, 'Who am I?')
      expect(state === 'COMPLETED' && messages === 4, `${state} with ${messages} messages`)
    },
    'keep the rules of a store in a Durable Object': async () => {
      const { broken, kept } = await object('checked').check()
      expect(broken.length === 0 && kept > 40, `${kept} kept; ${broken.join('; ')}`)
    },
    'let a session sleep in a Durable Object': async () => {
      const ask = async (init) =>
        (await example.fetch(new Request('http://localhost/order-17', init), env)).json()
      const first = await ask({ method: 'POST', body: 'Send the goods once they are paid.' })
      expect(first.state === 'PAUSED' && first.wakeAt > 0, JSON.stringify(first))
      const { state } = await ask({ method: 'GET' })
      expect(state === 'PAUSED' || state === 'COMPLETED', state)
    },
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url).searchParams.get('model')
    return Response.json(await playAll(url, { objects: (expect) => listObjectFeatures(url, env, expect) }))
  },
}
