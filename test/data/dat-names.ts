/**
 * The names of DAT 2.0, uDAPL and kDAPL, and of the IB and iWARP extensions (dat.h, udat.h, kdat.h,
 * dat_error.h, dat_ib_extensions.h, dat_iw_extensions.h). docs/dat-map.md must have a row for each,
 * section by section.
 */
const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const DAT_NAMES: Readonly<Record<string, readonly string[]>> = {
  'Calls: interface adapter and registry': words(`
    dat_ia_open dat_ia_openv dat_ia_query dat_ia_close dat_registry_providers_related
    dat_set_consumer_context dat_get_consumer_context dat_get_handle_type
    dat_registry_list_providers dat_registry_add_provider dat_registry_remove_provider
    dat_provider_init dat_provider_fini dat_strerror dat_extension_op ia_ha_related
  `),
  'Calls: event dispatchers and notification objects': words(`
    dat_evd_create dat_evd_query dat_evd_modify_cno dat_evd_enable dat_evd_disable dat_evd_wait
    dat_evd_dequeue dat_evd_post_se dat_evd_resize dat_evd_set_unwaitable
    dat_evd_clear_unwaitable dat_evd_free dat_cno_create dat_cno_fd_create dat_cno_modify_agent
    dat_cno_query dat_cno_wait dat_cno_trigger dat_cno_free
  `),
  'Calls: endpoints': words(`
    dat_ep_create dat_ep_create_with_srq dat_ep_query dat_ep_modify dat_ep_connect
    dat_ep_dup_connect dat_ep_common_connect dat_ep_disconnect dat_ep_reset dat_ep_free
    dat_ep_get_status dat_ep_recv_query dat_ep_set_watermark dat_ep_post_send
    dat_ep_post_send_with_invalidate dat_ep_post_recv dat_ep_post_rdma_write
    dat_ep_post_rdma_read dat_ep_post_rdma_read_to_rmr
  `),
  'Calls: service points and connection requests': words(`
    dat_psp_create dat_psp_create_any dat_psp_query dat_psp_free dat_rsp_create dat_rsp_query
    dat_rsp_free dat_csp_create dat_csp_query dat_csp_free dat_cr_query dat_cr_accept
    dat_cr_reject dat_cr_handoff
  `),
  'Calls: memory': words(`
    dat_pz_create dat_pz_query dat_pz_free dat_lmr_create dat_lmr_query dat_lmr_free
    dat_lmr_sync_rdma_read dat_lmr_sync_rdma_write dat_rmr_create dat_rmr_create_for_ep
    dat_rmr_query dat_rmr_free dat_rmr_bind
  `),
  'Calls: shared receive queues': words(`
    dat_srq_create dat_srq_post_recv dat_srq_query dat_srq_resize dat_srq_set_lw dat_srq_free
  `),
  'Calls: kDAPL': words(`
    dat_evd_kcreate dat_evd_modify_upcall dat_lmr_kcreate dat_ia_memtype_hint dat_lmr_allocate
    dat_lmr_fmr dat_lmr_invalidate dat_ia_reserved_lmr
  `),
  'Calls: IB extensions': words(`
    dat_ib_post_fetch_and_add dat_ib_post_cmp_and_swap dat_ib_post_rdma_write_immed
    dat_ib_post_send_ud dat_ib_post_recv_ud dat_ib_query_counters dat_ib_print_counters
    dat_ib_start_counter dat_ib_stop_counter dat_ib_ud_cm_free dat_ib_ud_ah_free
    dat_ib_open_query dat_ib_close_query dat_ib_collective_create_member
    dat_ib_collective_free_member dat_ib_collective_create_group dat_ib_collective_free_group
    dat_ib_collective_set_clock dat_ib_collective_read_clock dat_ib_collective_scatter
    dat_ib_collective_scatterv dat_ib_collective_gather dat_ib_collective_gatherv
    dat_ib_collective_allgather dat_ib_collective_allgatherv dat_ib_collective_alltoall
    dat_ib_collective_alltoallv dat_ib_collective_reduce dat_ib_collective_allreduce
    dat_ib_collective_reduce_scatter dat_ib_collective_scan dat_ib_collective_broadcast
    dat_ib_collective_barrier
  `),
  'Calls: iWARP extensions': words(`
    dat_iw_ssp_create dat_iw_ssp_free dat_iw_ssp_query dat_iw_socket_connect
  `),
  Events: words(`
    DAT_DTO_COMPLETION_EVENT DAT_RMR_BIND_COMPLETION_EVENT DAT_CONNECTION_REQUEST_EVENT
    DAT_CONNECTION_EVENT_ESTABLISHED DAT_CONNECTION_EVENT_PEER_REJECTED
    DAT_CONNECTION_EVENT_NON_PEER_REJECTED DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR
    DAT_CONNECTION_EVENT_DISCONNECTED DAT_CONNECTION_EVENT_BROKEN DAT_CONNECTION_EVENT_TIMED_OUT
    DAT_CONNECTION_EVENT_UNREACHABLE DAT_ASYNC_ERROR_EVD_OVERFLOW
    DAT_ASYNC_ERROR_IA_CATASTROPHIC DAT_ASYNC_ERROR_EP_BROKEN DAT_ASYNC_ERROR_TIMED_OUT
    DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR DAT_HA_DOWN_TO_1 DAT_HA_UP_TO_MULTI_PATH
    DAT_SOFTWARE_EVENT DAT_EXTENSION_EVENT DAT_IB_DTO_EVENT DAT_IB_UD_CONNECTION_REQUEST_EVENT
    DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED DAT_IB_UD_CONNECTION_REJECT_EVENT
    DAT_IB_UD_CONNECTION_ERROR_EVENT DAT_IB_COLLECTIVE_EVENT
  `),
  'Reasons of asynchronous errors': words(`
    DAT_IA_ASYNC_ERROR_CATASTROPHIC DAT_IA_ASYNC_ERROR_OTHER DAT_EP_TRANSFER_TO_ERROR
    DAT_EP_OTHER_ERROR DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT DAT_EVD_OVERFLOW_ERROR
    DAT_EVD_OTHER_ERROR DAT_SRQ_TRANSFER_TO_ERROR DAT_SRQ_OTHER_ERROR
    DAT_SRQ_LOW_WATERMARK_EVENT DAT_LMR_OTHER_ERROR DAT_RMR_OTHER_ERROR DAT_PZ_OTHER_ERROR
  `),
  'Fields of events': words(`
    event_number evd_handle DTO.ep_handle DTO.user_cookie DTO.status DTO.transfered_length
    DTO.operation DTO.rmr_context RMR.rmr_handle RMR.user_cookie RMR.status CR.sp_handle
    CR.local_ia_address_ptr CR.conn_qual CR.cr_handle CR.truncate_flag CONNECTION.ep_handle
    CONNECTION.private_data_size CONNECTION.private_data ASYNC.dat_handle ASYNC.reason
    SE.pointer event_extension_data
  `),
  'DTO completion statuses': words(`
    DAT_DTO_SUCCESS DAT_DTO_ERR_FLUSHED DAT_DTO_ERR_LOCAL_LENGTH DAT_DTO_ERR_LOCAL_EP
    DAT_DTO_ERR_LOCAL_PROTECTION DAT_DTO_ERR_BAD_RESPONSE DAT_DTO_ERR_REMOTE_ACCESS
    DAT_DTO_ERR_REMOTE_RESPONDER DAT_DTO_ERR_TRANSPORT DAT_DTO_ERR_RECEIVER_NOT_READY
    DAT_DTO_ERR_PARTIAL_PACKET DAT_RMR_OPERATION_FAILED DAT_DTO_ERR_LOCAL_MM_ERROR
  `),
  DTOs: words(`
    DAT_DTO_SEND DAT_DTO_RDMA_WRITE DAT_DTO_RDMA_READ DAT_DTO_RECEIVE
    DAT_DTO_RECEIVE_WITH_INVALIDATE DAT_DTO_BIND_MW DAT_DTO_LMR_FMR DAT_DTO_LMR_INVALIDATE
    DAT_IB_DTO_RDMA_WRITE_IMMED DAT_IB_DTO_RECV_IMMED DAT_IB_DTO_FETCH_ADD DAT_IB_DTO_CMP_SWAP
    DAT_IB_DTO_RECV_MSG_IMMED DAT_IB_DTO_SEND_UD DAT_IB_DTO_RECV_UD DAT_IB_DTO_RECV_UD_IMMED
    DAT_IB_DTO_COLLECTIVES
  `),
  'Endpoint states': words(`
    DAT_EP_STATE_UNCONNECTED DAT_EP_STATE_UNCONFIGURED_UNCONNECTED DAT_EP_STATE_RESERVED
    DAT_EP_STATE_UNCONFIGURED_RESERVED DAT_EP_STATE_PASSIVE_CONNECTION_PENDING
    DAT_EP_STATE_UNCONFIGURED_PASSIVE DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
    DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING DAT_EP_STATE_UNCONFIGURED_TENTATIVE
    DAT_EP_STATE_CONNECTED DAT_EP_STATE_DISCONNECT_PENDING DAT_EP_STATE_DISCONNECTED
    DAT_EP_STATE_COMPLETION_PENDING DAT_EP_STATE_CONNECTED_SINGLE_PATH
    DAT_EP_STATE_CONNECTED_MULTI_PATH
  `),
  'Other states': words(`
    DAT_EVD_STATE_ENABLED DAT_EVD_STATE_DISABLED DAT_EVD_STATE_WAITABLE DAT_EVD_STATE_UNWAITABLE
    DAT_EVD_STATE_CONFIG_NOTIFY DAT_EVD_STATE_CONFIG_SOLICITED DAT_EVD_STATE_CONFIG_THRESHOLD
    DAT_SRQ_STATE_ERROR DAT_SRQ_STATE_OPERATIONAL DAT_SRQ_STATE_SHUTDOWN DAT_CNO_UNTRIGGERED
    DAT_CNO_TRIGGERED DAT_CNO_DEAD
  `),
  'Interface adapter attributes': words(`
    adapter_name vendor_name hardware_version_major hardware_version_minor
    firmware_version_major firmware_version_minor ia_address_ptr max_eps max_dto_per_ep
    max_rdma_read_per_ep_in max_rdma_read_per_ep_out max_evds max_evd_qlen
    max_iov_segments_per_dto max_lmrs max_lmr_block_size max_lmr_virtual_address max_pzs
    max_message_size max_rdma_size max_rmrs max_rmr_target_address max_srqs max_ep_per_srq
    max_recv_per_srq max_iov_segments_per_rdma_read max_iov_segments_per_rdma_write
    max_rdma_read_in max_rdma_read_out max_rdma_read_per_ep_in_guaranteed
    max_rdma_read_per_ep_out_guaranteed zb_supported extension_supported extension_version
    reserved_lmr_supported num_transport_attr transport_attr num_vendor_attr vendor_attr
  `),
  'Provider attributes': words(`
    provider_name provider_version_major provider_version_minor dapl_version_major
    dapl_version_minor lmr_mem_types_supported iov_ownership_on_return dat_qos_supported
    completion_flags_supported is_thread_safe max_private_data_size supports_multipath
    ep_creator upcall_policy pz_support optimal_buffer_alignment evd_stream_merging_supported
    srq_supported srq_watermarks_supported srq_ep_pz_difference_supported srq_info_supported
    ep_recv_info_supported lmr_sync_req dto_async_return_guaranteed rdma_write_for_rdma_read_req
    rdma_read_lmr_rmr_context_exposure rmr_scope_supported is_signal_safe is_interrupt_safe
    ha_supported ha_loadbalancing fmr_supported lmr_for_fmr_scope num_provider_specific_attr
    provider_specific_attr
  `),
  'Named provider attributes': words(`
    DAT_IB_PROVIDER_NAME DAT_IB_DEVICE_NAME DAT_IB_CONNECTIVITY_MODE DAT_IB_RDMA_READ
    DAT_IB_NODE_GUID DAT_IB_GID DAT_IB_TRANSPORT_MTU DAT_IB_PORT_STATUS DAT_IB_PORT_NUMBER
    DAT_EXTENSION_INTERFACE DAT_IB_FETCH_AND_ADD DAT_IB_CMP_AND_SWAP DAT_IB_IMMED_DATA DAT_IB_UD
    DAT_COLL DAT_COUNTERS DAT_IB_PROXY_CPU_FAMILY DAT_IB_PROXY_CPU_MODEL DAT_IB_PROXY_VERSION
  `),
  'Endpoint attributes': words(`
    service_type max_message_size max_rdma_size qos recv_completion_flags
    request_completion_flags max_recv_dtos max_request_dtos max_recv_iov max_request_iov
    max_rdma_read_in max_rdma_read_out srq_soft_hw max_rdma_read_iov max_rdma_write_iov
    ep_transport_specific_count ep_transport_specific ep_provider_specific_count
    ep_provider_specific
  `),
  'Parameters that queries tell': words(`
    EP.ia_handle EP.ep_state EP.comm EP.local_ia_address_ptr EP.local_port_qual
    EP.remote_ia_address_ptr EP.remote_port_qual EP.pz_handle EP.recv_evd_handle
    EP.request_evd_handle EP.connect_evd_handle EP.srq_handle EP.ep_attr EVD.ia_handle
    EVD.evd_qlen EVD.evd_state EVD.cno_handle EVD.evd_flags PSP.ia_handle PSP.conn_qual
    PSP.evd_handle PSP.psp_flags CR.remote_ia_address_ptr CR.remote_port_qual
    CR.private_data_size CR.private_data CR.local_ep_handle LMR.ia_handle LMR.mem_type
    LMR.region_desc LMR.length LMR.pz_handle LMR.mem_priv LMR.va_type LMR.lmr_context
    LMR.rmr_context LMR.registered_size LMR.registered_address RMR.ia_handle RMR.pz_handle
    RMR.lmr_triplet RMR.mem_priv RMR.rmr_context SRQ.ia_handle SRQ.srq_state SRQ.pz_handle
    SRQ.max_recv_dtos SRQ.max_recv_iov SRQ.low_watermark SRQ.available_dto_count
    SRQ.outstanding_dto_count CNO.ia_handle CNO.proxy_type CNO.proxy
  `),
  'Flags and enumerations': words(`
    DAT_COMPLETION_DEFAULT_FLAG DAT_COMPLETION_SUPPRESS_FLAG DAT_COMPLETION_SOLICITED_WAIT_FLAG
    DAT_COMPLETION_UNSIGNALLED_FLAG DAT_COMPLETION_BARRIER_FENCE_FLAG
    DAT_COMPLETION_EVD_THRESHOLD_FLAG DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG
    DAT_QOS_BEST_EFFORT DAT_QOS_HIGH_THROUGHPUT DAT_QOS_LOW_LATENCY DAT_QOS_ECONOMY
    DAT_QOS_PREMIUM DAT_CONNECT_DEFAULT_FLAG DAT_CONNECT_MULTIPATH_REQUESTED_FLAG
    DAT_CONNECT_MULTIPATH_REQUIRED_FLAG DAT_CLOSE_ABRUPT_FLAG DAT_CLOSE_GRACEFUL_FLAG
    DAT_EVD_SOFTWARE_FLAG DAT_EVD_CR_FLAG DAT_EVD_DTO_FLAG DAT_EVD_CONNECTION_FLAG
    DAT_EVD_RMR_BIND_FLAG DAT_EVD_ASYNC_FLAG DAT_EVD_DEFAULT_FLAG DAT_PSP_CONSUMER_FLAG
    DAT_PSP_PROVIDER_FLAG DAT_MEM_PRIV_NONE_FLAG DAT_MEM_PRIV_LOCAL_READ_FLAG
    DAT_MEM_PRIV_REMOTE_READ_FLAG DAT_MEM_PRIV_LOCAL_WRITE_FLAG DAT_MEM_PRIV_REMOTE_WRITE_FLAG
    DAT_MEM_PRIV_ALL_FLAG DAT_IB_MEM_PRIV_REMOTE_ATOMIC DAT_VA_TYPE_VA DAT_VA_TYPE_ZB
    DAT_RMR_SCOPE_EP DAT_RMR_SCOPE_PZ DAT_RMR_SCOPE_ANY DAT_MEM_TYPE_VIRTUAL DAT_MEM_TYPE_LMR
    DAT_MEM_TYPE_SHARED_VIRTUAL DAT_MEM_TYPE_PHYSICAL DAT_MEM_TYPE_PLATFORM DAT_MEM_TYPE_IA
    DAT_MEM_TYPE_BYPASS DAT_MEM_TYPE_PHYSICAL_VAR_PAGES DAT_MEM_OPTIMIZE_DONT_CARE
    DAT_MEM_OPTIMIZE_IA DAT_MEM_OPTIMIZE_MIN_EXPOSURE DAT_MEM_OPTIMIZE_EXACT_EXPOSURE
    DAT_IOV_CONSUMER DAT_IOV_PROVIDER_NOMOD DAT_IOV_PROVIDER_MOD DAT_PSP_CREATES_EP_NEVER
    DAT_PSP_CREATES_EP_IFASKED DAT_PSP_CREATES_EP_ALWAYS DAT_PZ_UNIQUE DAT_PZ_SHAREABLE
    DAT_SERVICE_TYPE_RC DAT_IB_SERVICE_TYPE_UD DAT_EXTENSION_NONE DAT_EXTENSION_IB
    DAT_EXTENSION_IW DAT_HA_LOADBALANCING_NONE DAT_HA_LOADBALANCING_INTERCOMM
    DAT_HA_LOADBALANCING_INTRACOMM DAT_HA_FALSE DAT_HA_TRUE DAT_HA_UNKNOWN DAT_HA_CONFLICTING
    DAT_WATERMARK_INFINITE DAT_HW_DEFAULT DAT_SRQ_LW_DEFAULT DAT_VALUE_UNKNOWN
    DAT_PROXY_TYPE_NONE DAT_PROXY_TYPE_AGENT DAT_PROXY_TYPE_FD DAT_HANDLE_TYPE
    DAT_EVD_ASYNC_EXISTS DAT_EVD_OUT_OF_SCOPE DAT_TIMEOUT_INFINITE DAT_UPCALL_DISABLE
    DAT_UPCALL_SINGLE_INSTANCE DAT_UPCALL_NORIFY DAT_UPCALL_MANY DAT_UPCALL_TEARDOWN
    DAT_UPCALL_SAME DAT_UPCALL_NULL DAT_UPCALL_INVOC_NEW DAT_UPCALL_INVOC_ANY
  `),
  Types: words(`
    DAT_COUNT DAT_UINT32 DAT_UINT64 DAT_TIMEOUT DAT_BOOLEAN DAT_CONTEXT DAT_DTO_COOKIE
    DAT_RMR_COOKIE DAT_LMR_COOKIE DAT_HANDLE DAT_CONN_QUAL DAT_PORT_QUAL DAT_VLEN DAT_VADDR
    DAT_SEG_LENGTH DAT_LMR_CONTEXT DAT_RMR_CONTEXT DAT_LMR_TRIPLET DAT_RMR_TRIPLET DAT_COMM
    DAT_FD DAT_IA_ADDRESS_PTR DAT_NAMED_ATTR DAT_NAME_MAX_LENGTH DAT_OPTIMAL_ALIGNMENT
  `),
};
