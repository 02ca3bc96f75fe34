import { loadOnce } from '../base/lazy-load.js'
import type { AnswerPiece, PartialObjects } from '../structured/partial-objects.js'

/** Only those who want objects in parts need it. */
const loadPartialObjects = loadOnce(() => import('../structured/partial-objects.js'))

/** Reads objects from the pieces of answers. Pieces wait until the parser is loaded. */
export class ObjectStream {
  readonly #waiting: AnswerPiece[] = []
  #objects: PartialObjects | undefined
  /** Settles when all pieces that waited are read; rejects when the parser cannot be loaded. */
  readonly ready: Promise<void>

  constructor(next: (object: object) => void) {
    this.ready = this.#load(next)
    // Where the run is refused, nothing awaits it.
    this.ready.catch(() => undefined)
  }

  async #load(next: (object: object) => void): Promise<void> {
    const { PartialObjects } = await loadPartialObjects()
    const objects = new PartialObjects(next)
    // A subscriber may cause the next piece.
    for (let piece = this.#waiting.shift(); piece; piece = this.#waiting.shift()) objects.read(piece)
    this.#objects = objects
  }

  read(piece: AnswerPiece): void {
    if (this.#objects) this.#objects.read(piece)
    else this.#waiting.push(piece)
  }
}
