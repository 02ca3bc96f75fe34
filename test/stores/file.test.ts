import { describeStore } from './conformance.js'
import { filePlace } from './folder.js'

describeStore('the store in a folder', filePlace, { shared: true })
