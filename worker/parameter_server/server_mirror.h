/* SPDX-License-Identifier: Apache-2.0
 *
 * psBackup: each server hands what it applies to the next one, which keeps a copy
 * of it, before it acknowledges anything. A server's successor takes its state
 * from there.
 *
 * What is handed on has a sequence number; the backup's word covers all up to it.
 * A stream begins with a copy of everything, so that a backup which was lost, or
 * came late, is made good without a gap.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_MIRROR_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_MIRROR_H

#include "worker/parameter_server/server_parts.h"

int mirror_start(struct ps_server *server, struct error *error);
/* Between rpc_stop and rpc_free, and after them. */
void mirror_stop(struct ps_server *server);
void mirror_free(struct ps_server *server);
void mirror_tick(struct ps_server *server);

/* Hands an update on; acknowledges it once the backup has it. False when there is no backup to wait for. */
bool mirror_update(struct ps_server *server, struct exchange *exchange, const struct update *update,
                   enum update_verdict verdict, bool pull);
/* The same for a synchronous step that was applied; STEPPED follows. */
bool mirror_step(struct ps_server *server, const struct ps_message *order);
/* The state is another: the backup needs it anew. */
void mirror_copy(struct ps_server *server);
/* The exchange is gone. */
void mirror_forget(struct ps_server *server, const struct exchange *exchange);
/* Has the state fetched from the backup; a STANDING follows, with or without it. */
void mirror_fetch(struct ps_server *server);
/* The state comes from elsewhere: what may still be on its way from the backup is older. */
void mirror_abandon_fetch(struct ps_server *server);
/* Whether the backup has all that was acknowledged, should this process end now. */
bool mirror_is_whole(const struct ps_server *server);
/* This server is superseded: it neither hands on nor keeps anything any more. */
void mirror_part(struct ps_server *server);
/* Whom acknowledgements, or this server's start, have been waiting for; leaves `text` alone when for nobody. */
void mirror_describe(const struct ps_server *server, char text[PS_TEXT_MAX]);
/* Whether the server before this one could be restored from here, and not to a lineage that the crew has left. */
bool mirror_holds_guest(const struct ps_server *server);

/* For rpc_method.opened of PS_METHOD_MIRROR. */
void mirror_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events, void **ret_context);

#endif
