/** Public face of the peers pack: the other servers of the home. */
export { atOwner, type Place, Unreached } from './owner.ts'
export { Peers, type PeerTopic, PeerTopics } from './service.ts'
