import { filePlace } from '../stores/folder.js'
import { usePlace } from '../stores/use-place.js'
import { describeLongList } from './long-list.js'

const { open } = usePlace(filePlace)

describeLongList('a long list of sessions in a folder', open)
