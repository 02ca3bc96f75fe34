// workerd: a request with the model's address is answered with what became of each feature.
import { playAll } from './features.mjs'

export default {
  fetch: async (request) => Response.json(await playAll(new URL(request.url).searchParams.get('model'))),
}
